/** The programs of README.md that a page loads: what they export. */
declare module "virtual:readme/vue-store.ts" {
  import type { Store } from "turnloop";
  import type { ShallowRef } from "vue";
  export function useStore<T>(store: Store<T>): Readonly<ShallowRef<T>>;
}
declare module "virtual:readme/svelte-store.ts" {
  import type { Readable } from "svelte/store";
  import type { Store } from "turnloop";
  export function fromStore<T>(store: Store<T>): Readable<T>;
}
declare module "virtual:readme/dom.ts" {
  import type { Agent } from "turnloop";
  export function draw(agent: Agent, list: HTMLElement): () => void;
}
