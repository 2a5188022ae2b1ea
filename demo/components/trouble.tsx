/** What keeps the chat from being kept, and what can be done about it. */
import type { Durability } from "turnloop";
import type { ReactElement } from "react";

interface Props {
  readonly durable: Durability | undefined;
  /** Nothing that is said here outlives the page. */
  readonly isForgetful: boolean;
  onExport(): void;
  onReopen(): void;
}

export function Trouble({ durable, isForgetful, onExport, onReopen }: Props): ReactElement | null {
  if (durable === "lost") {
    return (
      <div className="trouble" role="alert">
        <p>
          <strong>Another tab has taken this chat over.</strong> What it writes does not show here, and nothing can be
          said here any more.
        </p>
        <button type="button" onClick={onReopen}>
          Take it back
        </button>
      </div>
    );
  }
  if (durable === "degraded") {
    return (
      <div className="trouble" role="alert">
        <p>
          <strong>This browser does not store what is said.</strong> Its disk may be full; it is tried again all the
          time. Export the chat before you leave.
        </p>
        <button type="button" onClick={onExport}>
          Export
        </button>
      </div>
    );
  }
  if (!isForgetful) return null;
  return (
    <div className="trouble" role="status">
      <p>
        <strong>This browser lets the page store nothing</strong>, as in some private windows: the chat ends with the
        page. Export what you want to keep.
      </p>
      <button type="button" onClick={onExport}>
        Export
      </button>
    </div>
  );
}
