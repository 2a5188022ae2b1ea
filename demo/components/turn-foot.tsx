/** Below the answer of a turn that is over: take it along, have it again, go on from here otherwise. */
import type { Usage } from "turnloop";
import type { ReactElement } from "react";
import { tokensOf } from "../prices.ts";
import { useCopy } from "../use-copy.ts";
import { Icon, type IconName } from "./icon.tsx";

interface Props {
  readonly text: string;
  readonly usage: Usage | undefined;
  onRepeat(): void;
  onFork(): void;
}

export function TurnFoot({ text, usage, onRepeat, onFork }: Props): ReactElement {
  const { isCopied, copy } = useCopy();
  return (
    <p className="deeds">
      {text !== "" && (
        <Deed name={isCopied ? "Copied" : "Copy"} icon={isCopied ? "check" : "copy"} onDo={() => copy(text)} />
      )}
      <Deed name="Answer again in a copy" icon="loop" onDo={onRepeat} />
      <Deed name="Continue in a copy from here" icon="fork" onDo={onFork} />
      {usage && <small>{`${tokensOf(usage).toLocaleString("en")} tokens`}</small>}
    </p>
  );
}

interface DeedProps {
  readonly name: string;
  readonly icon: IconName;
  onDo(): void;
}

function Deed({ name, icon, onDo }: DeedProps): ReactElement {
  return (
    <button type="button" className="quiet" title={name} onClick={onDo}>
      <Icon name={icon} />
      <span className="visually-hidden">{name}</span>
    </button>
  );
}
