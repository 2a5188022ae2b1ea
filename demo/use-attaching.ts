/** Takes files up wherever they come from: chosen, pasted, or dropped on the page. */
import { useCallback, useEffect, useRef, useState, type Dispatch, type SetStateAction } from "react";
import { attach } from "./attachments.ts";
import type { Draft } from "./draft.ts";

export interface AttachingState {
  readonly problems: readonly string[];
  /** A file is being held over the page. */
  readonly isOver: boolean;
  take(files: Iterable<File>): void;
  dismiss(): void;
}

export function useAttaching({ files: { length } }: Draft, setDraft: Dispatch<SetStateAction<Draft>>): AttachingState {
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [isOver, setOver] = useState(false);
  const already = useRef(length);
  useEffect(() => {
    already.current = length;
  }, [length]);

  const take = useCallback(
    (files: Iterable<File>): void => {
      void attach([...files], already.current).then((done) => {
        setProblems(done.problems);
        if (done.taken.length > 0) setDraft((now) => ({ ...now, files: [...now.files, ...done.taken] }));
      });
    },
    [setDraft],
  );

  useEffect(() => {
    const listening = new AbortController();
    const { signal } = listening;
    const holdsFiles = ({ dataTransfer }: DragEvent): boolean => dataTransfer?.types.includes("Files") ?? false;
    document.addEventListener(
      "dragover",
      (event) => {
        if (!holdsFiles(event)) return;
        // Without this the browser opens the file in place of the page.
        event.preventDefault();
        setOver(true);
      },
      { signal },
    );
    document.addEventListener(
      "dragleave",
      (event) => {
        if (event.relatedTarget === null) setOver(false);
      },
      { signal },
    );
    document.addEventListener(
      "drop",
      (event) => {
        if (!holdsFiles(event)) return;
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files ?? []);
      },
      { signal },
    );
    return () => listening.abort();
  }, [take]);

  return { problems, isOver, take, dismiss: () => setProblems([]) };
}
