import { sharesRequests } from "./platform.ts";
import type { Runtime } from "./runtime.ts";

/** Callbacks that are due at the same moment. */
interface Moment {
  readonly callbacks: Set<() => void>;
  readonly cancel: () => void;
}

/** By runtime and moment, in ms of the monotonic clock: a negative one keeps no process alive. */
const moments = new WeakMap<Runtime, Map<number, Moment>>();

/** The least ms for which timers are shared: for less, a timer of its own is worth being exact. */
const minSlack = 32;

/**
 * Calls `callback` once, at the earliest a sixteenth of `ms` before `ms` have passed. Callbacks of about the same moment share a
 * timer, so that what they send shares a request. The returned function cancels it.
 *
 * @param keepsAlive see {@link Runtime.timer}
 */
export function sharedTimer(
  runtime: Runtime,
  ms: number,
  callback: () => void,
  keepsAlive = true,
): () => void {
  const slack = 2 ** Math.floor(Math.log2(ms / 16));
  // On Workers a timer ends with the request that has set it.
  if (!(slack >= minSlack) || !sharesRequests()) return runtime.timer(ms, callback, keepsAlive);
  const now = runtime.monotonic();
  const due = Math.floor((now + ms) / slack) * slack;
  const key = keepsAlive ? due : -due;
  const known = moments.get(runtime) ?? new Map<number, Moment>();
  moments.set(runtime, known);
  let moment = known.get(key);
  if (!moment) {
    const callbacks = new Set<() => void>();
    const fire = () => {
      known.delete(key);
      for (const each of callbacks) {
        try {
          each();
        } catch (error) {
          // Surfaces as it would from a timer of its own, and stops no other.
          runtime.timer(0, () => {
            throw error;
          });
        }
      }
    };
    moment = { callbacks, cancel: runtime.timer(due - now, fire, keepsAlive) };
    known.set(key, moment);
  }
  const { callbacks, cancel } = moment;
  // One of its own: the same function may be due twice.
  const entry = () => callback();
  callbacks.add(entry);
  return () => {
    callbacks.delete(entry);
    if (callbacks.size > 0) return;
    cancel();
    if (known.get(key) === moment) known.delete(key);
  };
}
