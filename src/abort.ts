/** The callbacks of a signal, and what ends listening to it. */
interface Listening {
  readonly callbacks: Set<() => void>;
  readonly end: () => void;
}

const known = new WeakMap<AbortSignal, Listening>();

/**
 * Calls `callback` when `signal`, which has not aborted yet, does; the returned function cancels it. All callbacks of a
 * signal share one listener: many calls may have the same signal, and Node warns of a leak above ten listeners.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const listening = known.get(signal) ?? listenTo(signal);
  known.set(signal, listening);
  const { callbacks, end } = listening;
  // One of its own: the same function may be given twice.
  const entry = () => callback();
  callbacks.add(entry);
  return () => {
    callbacks.delete(entry);
    if (callbacks.size > 0) return;
    end();
    if (known.get(signal) === listening) known.delete(signal);
  };
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

function listenTo(signal: AbortSignal): Listening {
  const callbacks = new Set<() => void>();
  const abort = () => {
    for (const each of callbacks) each();
  };
  signal.addEventListener("abort", abort);
  return { callbacks, end: () => signal.removeEventListener("abort", abort) };
}
