/** What each signal calls. */
const known = new WeakMap<object, Set<() => void>>();

/**
 * Calls `callback` when `signal` aborts. The signal has not aborted yet. The returned function cancels the call. All callbacks
 * of a signal share one listener: many calls may share a signal, and Node warns of a leak above ten listeners.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = known.get(signal) ?? new Set();
  known.set(signal, callbacks);
  // A signal that has this listener already does not take it once more.
  signal.addEventListener("abort", callAll);
  // One of its own: a caller may pass one function twice.
  const entry = () => callback();
  callbacks.add(entry);
  return () => {
    callbacks.delete(entry);
    if (callbacks.size === 0) signal.removeEventListener("abort", callAll);
  };
}

function callAll({ target }: Event): void {
  for (const callback of known.get(target!) ?? []) callback();
}

/**
 * What `work` resolves to, or undefined as soon as `signal` aborts. The work goes on: requests under way must be heard,
 * because one that is executed after its rollback would hold the lock until its ttl.
 */
export function unlessAborted<Value>(
  work: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value | undefined> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return resolve(undefined);
    const ignoreAbort = onAbort(signal, () => resolve(undefined));
    void work.then(resolve, reject).finally(ignoreAbort);
  });
}
