/** The inspector's looks. A sheet that is adopted needs no exception in a content security policy. */

let isAdopted = false;

export function adoptStyle(): void {
  if (isAdopted) return;
  isAdopted = true;
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

const STYLE = `
.tl-inspector {
  --ink: var(--tl-ink, light-dark(#1f1e1b, #ebe8e1));
  --soft: var(--tl-soft, light-dark(#5d5a52, #a8a49a));
  --line: var(--tl-line, light-dark(#e3e0d7, #32322e));
  --paper: var(--tl-paper, light-dark(#ffffff, #1f1f1c));
  --accent: var(--tl-accent, light-dark(#0d6b5e, #63c4b3));
  --warn: var(--tl-warn, light-dark(#8a5300, #e3b062));
  --bad: var(--tl-bad, light-dark(#a4281b, #f0998d));
  color: var(--ink);
  container-type: inline-size;
  font-size: 0.875rem;
  line-height: 1.45;
}
.tl-inspector * { box-sizing: border-box; }
.tl-inspector button {
  font: inherit; color: inherit; background: none; border: 1px solid var(--line);
  border-radius: 0.4rem; padding: 0.15rem 0.6rem; min-height: 1.75rem; cursor: pointer;
}
.tl-inspector button:disabled { opacity: 0.45; cursor: default; }
.tl-inspector button:focus-visible, .tl-inspector summary:focus-visible, .tl-inspector input:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 1px;
}
.tl-inspector button[aria-pressed="true"] { border-color: var(--accent); color: var(--accent); }
.tl-inspector small, .tl-note { color: var(--soft); font-size: 0.8125rem; }
.tl-note { margin: 0.75rem 0; }
.tl-tools, .tl-tabs, .tl-filters { display: flex; flex-wrap: wrap; gap: 0.4rem; margin: 0.5rem 0; }
.tl-tracks { border: 1px solid var(--line); border-radius: 0.5rem; overflow: hidden auto; max-height: 24rem; background: var(--paper); }
.tl-inspector .tl-row {
  display: grid; grid-template-columns: minmax(16rem, 38%) 1fr; align-items: stretch; justify-content: normal; gap: 0; width: 100%; border: 0; border-radius: 0;
  border-top: 1px solid var(--line); padding: 0 0.6rem; text-align: start; content-visibility: auto; contain-intrinsic-height: auto 2rem;
}
.tl-inspector .tl-head { border-top: 0; min-height: 0.7rem; position: sticky; top: 0; background: var(--paper); z-index: 1; }
.tl-inspector .tl-row[aria-pressed="true"] { background: color-mix(in srgb, var(--accent) 10%, transparent); border-color: var(--line); color: inherit; }
.tl-inspector .tl-row:focus-visible { outline-offset: -2px; }
.tl-name { display: flex; align-items: center; gap: 0.4rem; min-width: 0; padding-block: 0.25rem; white-space: nowrap; }
.tl-name > span { overflow: hidden; text-overflow: ellipsis; }
.tl-name > em { color: var(--bad); font-style: normal; font-size: 0.8125rem; overflow: hidden; text-overflow: ellipsis; min-width: 3rem; }
.tl-is-stopped .tl-name > em { color: var(--warn); }
.tl-name > small { margin-inline-start: auto; padding-inline: 0.5rem; flex: none; font-variant-numeric: tabular-nums; }
.tl-dot { flex: none; width: 0.55rem; height: 0.55rem; border-radius: 50%; background: var(--bar); }
.tl-turn { --bar: var(--soft); font-weight: 600; }
.tl-turn .tl-dot { border-radius: 0; clip-path: polygon(10% 0, 90% 50%, 10% 100%); }
.tl-turn[aria-expanded="true"] .tl-dot { rotate: 90deg; }
.tl-turn small, .tl-turn em { font-weight: 400; }
.tl-step { --bar: color-mix(in srgb, var(--soft) 60%, transparent); }
.tl-request { --bar: var(--accent); }
.tl-tool { --bar: light-dark(#5a55a8, #aaa5f0); }
.tl-wait { --bar: var(--warn); }
.tl-is-failed { --bar: var(--bad); }
.tl-track, .tl-ruler { position: relative; overflow: hidden; }
.tl-bar { position: absolute; top: 50%; translate: 0 -50%; height: 0.6rem; min-width: 2px; border-radius: 2px; background: var(--bar); overflow: hidden; }
.tl-is-open .tl-bar { background: repeating-linear-gradient(120deg, var(--bar) 0 6px, color-mix(in srgb, var(--bar) 55%, transparent) 6px 12px); }
.tl-wait .tl-bar { opacity: 0.7; }
.tl-waiting { position: absolute; inset: 0 auto 0 0; background: color-mix(in srgb, var(--paper) 55%, transparent); }
.tl-break { position: absolute; top: 0; bottom: 0; width: 0; border-inline-start: 2px dotted var(--soft); }
.tl-inspector pre {
  margin: 0.25rem 0; padding: 0.5rem 0.6rem; border-radius: 0.4rem; background: color-mix(in srgb, var(--soft) 8%, transparent);
  white-space: pre-wrap; overflow-wrap: anywhere; font: 0.8125rem/1.45 ui-monospace, "SF Mono", Menlo, monospace; max-height: 24rem; overflow: auto;
}
.tl-inspector summary { display: list-item; list-style: disclosure-closed inside; cursor: pointer; padding: 0.2rem 0; }
.tl-inspector details[open] > summary { list-style-type: disclosure-open; }
.tl-inspector details details { margin-inline-start: 1rem; }
.tl-messages { list-style: none; margin: 0.5rem 0; padding: 0; display: grid; gap: 0.5rem; }
.tl-request > .tl-messages { border-inline-start: 2px solid var(--accent); padding-inline-start: 0.75rem; }
.tl-reasoning { color: var(--soft); font-style: italic; }
.tl-log ol { list-style: none; margin: 0.5rem 0; padding: 0; }
.tl-log li { border-top: 1px solid var(--line); content-visibility: auto; contain-intrinsic-height: auto 1.75rem; }
.tl-log summary { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.tl-log summary span { color: var(--soft); font-size: 0.8125rem; }
.tl-filters input {
  font: inherit; color: inherit; background: none; border: 1px solid var(--line); border-radius: 0.4rem;
  padding: 0.15rem 0.6rem; min-width: 8rem; flex: 1;
}
@container (max-width: 40rem) {
  .tl-inspector .tl-row { grid-template-columns: 1fr; padding-block: 0.2rem; }
  .tl-track { height: 0.8rem; }
}
`;
