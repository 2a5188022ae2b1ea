/** The kinds of hook, and what registering and dispatching look like. */
import type { HookMap } from "./map.ts";

/** Undoes a registration. Calling it again does nothing. */
export type Unregister = () => void;
export type Awaitable<T> = T | Promise<T>;

/** Told, not asked: a listener that throws or rejects is reported and changes nothing. */
export interface Emit<P> {
  readonly kind: "emit";
  readonly payload: P;
}
/**
 * Around-middleware. `next()` answers what the listeners behind would; returning without it takes over;
 * calling it again runs them again.
 */
export interface Waterfall<P, R, N = undefined> {
  readonly kind: "waterfall";
  readonly payload: P;
  readonly answer: R;
  readonly patch: N;
}
/** Awaited one after another; where the hook may answer, the first answer that is not undefined ends the row. */
export interface Serial<P, R = void> {
  readonly kind: "serial";
  readonly payload: P;
  readonly answer: R;
}
/** Awaited all together; none can veto; the first failure is reported once all have settled. */
export interface Parallel<P> {
  readonly kind: "parallel";
  readonly payload: P;
}

export type HookListener<H> =
  H extends Emit<infer P>
    ? (payload: P) => void | Promise<void>
    : H extends Waterfall<infer P, infer R, infer N>
      ? (payload: P, next: (patch?: N) => Promise<R>) => Awaitable<R>
      : H extends Serial<infer P, infer R>
        ? (payload: P) => Awaitable<R | undefined | void>
        : H extends Parallel<infer P>
          ? (payload: P) => Awaitable<void>
          : never;

export type HookName = keyof HookMap & string;

export interface HookOptions {
  /** Goes before everybody registered so far, an agent's listener before the harness's. */
  prepend?: boolean;
  /** Unregisters when it aborts. */
  signal?: AbortSignal;
}

export interface Hooks {
  /**
   * Listens. Harness hooks hear every agent, the hooks of an agent's scope hear only that one, after the
   * harness's. Throws INVALID_HOOK when the listener is not a function, SCOPE_CLOSED once the layer is unwound.
   */
  on<K extends HookName>(name: K, listener: HookListener<HookMap[K]>, options?: HookOptions): Unregister;
}
