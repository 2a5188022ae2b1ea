/** Line icons, drawn for a 20 by 20 grid. Always beside a text or in a labelled button. */
import type { ReactElement } from "react";

const PATHS = {
  loop: "M16 6.2a7 7 0 1 0 1 4.8M16.6 2.6v3.9h-3.9",
  plus: "M10 4v12M4 10h12",
  settings: "M3 6h7m4 0h3M3 14h3m4 0h7M12 4v4M8 12v4",
  send: "M10 16V4.5M4.8 9.4 10 4.2l5.2 5.2",
  stop: "M6.5 6.5h7v7h-7z",
  chevron: "m7 5 5 5-5 5",
  check: "m4.5 10.5 3.6 3.6 7.4-8",
  cross: "m5.5 5.5 9 9m0-9-9 9",
  question: "M7.4 7.6a2.7 2.7 0 1 1 4 2.4c-.9.5-1.4 1-1.4 2m0 3v.1",
  back: "M8 4.5 3.5 9 8 13.5M4 9h8a4 4 0 0 1 4 4v2",
  inspect: "M3.5 5h8M6.5 10h10M4.5 15h6",
  list: "M4 5.5h12M4 10h12M4 14.5h8",
  pencil: "m4 16 .8-3.4L13 4.4l2.6 2.6-8.2 8.2L4 16",
  down: "M10 4v11.5m-5-5 5 5 5-5",
  clock: "M10 5.5V10l3 2M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0",
  copy: "M7.5 7.5h8v8h-8zM12.5 7.5v-3h-8v8h3",
  fork: "M6 3v6m0 8v-4c0-2 8-1.5 8-5V3M3.5 5.5 6 3l2.5 2.5M11.5 5.5 14 3l2.5 2.5",
  file: "M5.5 3h6l3.5 3.5V17h-9.5zM11 3v4h4",
  clip: "M15.5 9.2 9.7 15a3.6 3.6 0 0 1-5.1-5.1l6.4-6.4a2.4 2.4 0 0 1 3.4 3.4l-6.2 6.2a1.2 1.2 0 0 1-1.7-1.7l5.5-5.5",
  bin: "M4 6h12M8 6V4h4v2M5.5 6l.8 10.5h7.4L14.5 6M8.5 9v4.5m3-4.5v4.5",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { readonly name: IconName }): ReactElement {
  return (
    <svg className="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
