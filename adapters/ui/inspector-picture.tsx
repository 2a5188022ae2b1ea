/** The timeline as a picture: a row for each span, zoomed with the wheel, the keys or the buttons. */
import { useEffect, useMemo, useRef, useState, type KeyboardEvent, type ReactElement } from "react";
import type { TimelineSpan } from "turnloop";
import { createAxis, type Axis } from "./inspector-axis.ts";
import type { Row } from "./inspector-spans.ts";
import { durationText, outcomeOf, titleOf, tokensText } from "./inspector-text.ts";

interface PictureProps {
  readonly spans: readonly TimelineSpan[];
  readonly rows: readonly Row[];
  readonly selected: TimelineSpan | undefined;
  isOpen(span: TimelineSpan): boolean;
  onSelect(span: TimelineSpan): void;
}

/** The part of the picture that is shown: between 0 and 1. */
interface Window {
  readonly from: number;
  readonly to: number;
}

const WHOLE: Window = { from: 0, to: 1 };
const CLOSEST = 1e-5;

function zoomed({ from, to }: Window, factor: number, around: number): Window {
  const width = Math.min(1, Math.max(CLOSEST, (to - from) * factor));
  const start = around - ((around - from) / (to - from)) * width;
  const left = Math.min(1 - width, Math.max(0, start));
  return { from: left, to: left + width };
}

function moved(shown: Window, by: number): Window {
  const width = shown.to - shown.from;
  const from = Math.min(1 - width, Math.max(0, shown.from + by * width));
  return { from, to: from + width };
}

export function Picture({ spans, rows, selected, isOpen, onSelect }: PictureProps): ReactElement {
  const [shown, show] = useState(WHOLE);
  const tracks = useRef<HTMLDivElement>(null);
  const now = lastTime(spans);
  const axis = useMemo(() => createAxis(spans, now), [spans, now]);
  const middle = (shown.from + shown.to) / 2;
  const zoom = (factor: number): void => show((was) => zoomed(was, factor, middle));

  useEffect(() => {
    const element = tracks.current;
    if (!element) return undefined;
    // React listens passively, and the page would zoom along.
    const onWheel = (event: WheelEvent): void => {
      if (!event.ctrlKey && !event.metaKey && event.deltaX === 0) return;
      event.preventDefault();
      const { left, width } = element.querySelector(".tl-ruler")!.getBoundingClientRect();
      show((was) => {
        if (!event.ctrlKey && !event.metaKey) return moved(was, event.deltaX / width);
        const around = was.from + ((event.clientX - left) / width) * (was.to - was.from);
        return zoomed(was, Math.exp(event.deltaY / 200), Math.min(was.to, Math.max(was.from, around)));
      });
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, []);

  function fit(span: TimelineSpan): void {
    const [from, to] = [axis.place(span.startedAt), axis.place(span.endedAt ?? now)];
    const room = Math.max(CLOSEST, to - from) * 0.04;
    show({ from: Math.max(0, from - room), to: Math.min(1, to + room) });
  }

  function onKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      "0": () => show(WHOLE),
      ArrowLeft: () => show((was) => moved(was, -0.2)),
      ArrowRight: () => show((was) => moved(was, 0.2)),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  return (
    <div className="tl-picture">
      <div className="tl-tools" role="toolbar" aria-label="Zoom" tabIndex={-1} onKeyDown={onKey}>
        <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">
          +
        </button>
        <button type="button" onClick={() => zoom(2)} aria-label="Zoom out" disabled={shown.to - shown.from >= 1}>
          −
        </button>
        <button type="button" onClick={() => show(WHOLE)} disabled={shown.to - shown.from >= 1}>
          Whole session
        </button>
        <button type="button" onClick={() => selected && fit(selected)} disabled={!selected}>
          Selection
        </button>
      </div>
      <div className="tl-tracks" ref={tracks}>
        <div className="tl-row tl-head" aria-hidden="true">
          <span />
          <span className="tl-ruler">
            {axis.breaks.map(({ place, ms }) => (
              <i key={place} className="tl-break" style={{ left: percent(place, shown) }} title={durationText(ms)} />
            ))}
          </span>
        </div>
        {rows.map(({ span, depth }) => (
          <Track
            key={span.id}
            span={span}
            depth={depth}
            axis={axis}
            now={now}
            shown={shown}
            isSelected={span.id === selected?.id}
            isOpen={isOpen(span)}
            onSelect={onSelect}
            onKey={onKey}
          />
        ))}
      </div>
    </div>
  );
}

interface TrackProps extends Row {
  readonly axis: Axis;
  readonly now: number;
  readonly shown: Window;
  readonly isSelected: boolean;
  readonly isOpen: boolean;
  onSelect(span: TimelineSpan): void;
  onKey(event: KeyboardEvent): void;
}

function Track({ span, depth, axis, now, shown, isSelected, isOpen, onSelect, onKey }: TrackProps): ReactElement {
  const { startedAt, endedAt = now, firstChunkAt, usage, state, kind } = span;
  const [from, to] = [axis.place(startedAt), axis.place(endedAt)];
  const width = shown.to - shown.from;
  const outcome = outcomeOf(span);
  return (
    <button
      type="button"
      className={`tl-row tl-${kind} tl-is-${state}`}
      aria-pressed={isSelected}
      aria-expanded={kind === "turn" ? isOpen : undefined}
      onClick={() => onSelect(span)}
      onKeyDown={onKey}
    >
      <span className="tl-name" style={{ paddingInlineStart: `${depth * 0.9}rem` }}>
        <i className="tl-dot" aria-hidden="true" />
        <span>{titleOf(span)}</span>
        {outcome !== undefined && <em>{outcome}</em>}
        <small>
          {durationText(endedAt - startedAt)}
          {state === "open" && "…"}
          {usage && `, ${tokensText(usage)}`}
        </small>
      </span>
      <span className="tl-track" aria-hidden="true">
        <i className="tl-bar" style={{ left: percent(from, shown), width: `${((to - from) / width) * 100}%` }}>
          {firstChunkAt !== undefined && to > from && (
            <i
              className="tl-waiting"
              style={{ width: `${((axis.place(firstChunkAt) - from) / (to - from)) * 100}%` }}
              title={`first chunk after ${durationText(firstChunkAt - startedAt)}`}
            />
          )}
        </i>
      </span>
    </button>
  );
}

function percent(place: number, { from, to }: Window): string {
  return `${((place - from) / (to - from)) * 100}%`;
}

/** The latest time that the log tells of. */
function lastTime(spans: readonly TimelineSpan[]): number {
  return spans.reduce(
    (last, { startedAt, firstChunkAt = 0, endedAt = 0, children }) =>
      Math.max(last, startedAt, firstChunkAt, endedAt, children.length > 0 ? lastTime(children) : 0),
    0,
  );
}
