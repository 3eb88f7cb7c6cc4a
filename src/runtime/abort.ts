const known = new WeakMap<object, Set<() => void>>();

/**
 * The returned function cancels it. All callbacks of a signal share one listener, because Node warns of a leak above
 * ten.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const callbacks = known.get(signal) ?? new Set();
  known.set(signal, callbacks);
  signal.addEventListener("abort", callAll);
  // A caller may pass one function twice.
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
 * Undefined as soon as `signal` aborts. The work goes on, because a request that is executed after its rollback would
 * hold the lock.
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
