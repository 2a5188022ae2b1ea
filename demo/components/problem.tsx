/** An error, and what can be done about it. */
import type { ErrorData } from "turnloop";
import type { ReactElement, ReactNode } from "react";
import { adviceFor } from "../advice.ts";

interface Props {
  readonly title: string;
  readonly error: ErrorData;
  onSettings?(): void;
  /** What can be done about it, as buttons. */
  readonly children?: ReactNode;
}

export function Problem({ title, error, onSettings, children }: Props): ReactElement {
  const advice = adviceFor(error);
  return (
    <div className="problem" role="alert">
      <p>
        <strong>{title}:</strong> {error.message}
      </p>
      <p>
        {advice}
        {onSettings && advice.includes("Settings") && (
          <button type="button" className="link" onClick={onSettings}>
            Open Settings
          </button>
        )}
      </p>
      {children}
    </div>
  );
}
