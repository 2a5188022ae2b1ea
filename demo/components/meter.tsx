/** What the chat has used so far, and what that cost where the visitor has said what it costs. */
import type { Agent, Usage } from "turnloop";
import type { ReactElement } from "react";
import { costOf, tokensOf, type Prices } from "../prices.ts";
import { useUsage } from "../use-usage.ts";

interface Props {
  readonly agent: Agent | undefined;
  readonly prices: Prices;
}

export function Meter({ agent, prices }: Props): ReactElement | null {
  const usage = useUsage(agent);
  const tokens = usage ? tokensOf(usage.total) : 0;
  if (!usage || tokens === 0) return null;
  const cost = costOf(usage, prices);
  return (
    <>
      <button type="button" className="meter" popoverTarget="meter" title="What this chat has used">
        {count(tokens)} tokens
        {cost && <span className="cost">{`${cost.isPart ? "at least " : ""}${money(cost.amount)}`}</span>}
      </button>
      <div id="meter" popover="auto" className="meter-body" role="group" aria-label="Used by this chat" tabIndex={0}>
        <table>
          <caption>Used by this chat</caption>
          <thead>
            <tr>
              <th scope="col">Model</th>
              <th scope="col">Input</th>
              <th scope="col">Cached</th>
              <th scope="col">Output</th>
              <th scope="col">Cost</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(usage.byModel).map(([model, used]) => (
              <Row
                key={model}
                model={model}
                used={used}
                cost={costOf({ ...usage, byModel: { [model]: used } }, prices)}
              />
            ))}
          </tbody>
        </table>
        <p className="hint">
          Prices are those that you enter in Settings. The scripted demo counts four letters a token.
        </p>
      </div>
    </>
  );
}

interface RowProps {
  readonly model: string;
  readonly used: Usage;
  readonly cost: { readonly amount: number } | undefined;
}

function Row({ model, used, cost }: RowProps): ReactElement {
  const { input = 0, cacheRead = 0, cacheWrite = 0, output = 0, reasoning = 0 } = used;
  return (
    <tr>
      <th scope="row">{model}</th>
      <td>{count(input + cacheWrite)}</td>
      <td>{count(cacheRead)}</td>
      <td>{count(output + reasoning)}</td>
      <td>{cost ? money(cost.amount) : "no price"}</td>
    </tr>
  );
}

function count(tokens: number): string {
  return tokens.toLocaleString("en");
}

/** Of sums below a cent, too, something is to be seen. */
function money(amount: number): string {
  return `$${amount.toLocaleString("en", { minimumFractionDigits: 2, maximumSignificantDigits: 3 })}`;
}
