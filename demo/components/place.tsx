/** Who drives the chat, and whether what was said is stored. */
import type { AgentSnapshot, Durability } from "turnloop";
import { useEffect, useState, type ReactElement } from "react";

interface Props {
  readonly snapshot: AgentSnapshot | undefined;
  /** It could not be opened. */
  readonly isFailed: boolean;
}

const STORED: Readonly<Record<Durability, string>> = {
  stored: "saved",
  pending: "saving",
  degraded: "not saved",
  lost: "taken over",
};

/** A write under way is worth a word only when it takes its time. Milliseconds. */
const PATIENCE = 700;

export function Place({ snapshot, isFailed }: Props): ReactElement {
  const durable = useSettled(snapshot?.durable);
  const driver = driverOf(snapshot);
  // A small screen leaves out who drives, but not that nobody can be reached.
  const isAway = snapshot?.connection !== undefined && snapshot.connection !== "open";
  const kind = isFailed ? "lost" : isAway && durable === "stored" ? "pending" : (durable ?? "pending");
  return (
    <p className="place" role="status" data-kind={kind}>
      {isFailed ? (
        "Not open"
      ) : snapshot ? (
        <>
          <span className={isAway ? undefined : "driver"}>{driver} · </span>
          {STORED[durable ?? "pending"]}
        </>
      ) : (
        "Opening"
      )}
    </p>
  );
}

function driverOf(snapshot: AgentSnapshot | undefined): string {
  switch (snapshot?.connection) {
    case "open":
      return "Runs at the edge";
    case "connecting":
      return "Connecting";
    case "closed":
      return "Not connected";
    default:
      return "Runs in this tab";
  }
}

/** `pending` shows once it has lasted. */
function useSettled(durable: Durability | undefined): Durability | undefined {
  const [isLong, setLong] = useState(false);
  const isPending = durable === "pending";
  useEffect(() => {
    if (!isPending) return undefined;
    const timer = setTimeout(() => setLong(true), PATIENCE);
    return () => {
      clearTimeout(timer);
      setLong(false);
    };
  }, [isPending]);
  return isPending && !isLong ? "stored" : durable;
}
