/** Options here, of which the first that a call has counts, and what other packages call it. Some need a word on their meaning. */
const foreign: readonly [here: readonly string[], given: RegExp][] = [
  [["every", "window", "backoff"], /^interv|^period/],
  [["lease", "ttl"], /^lease|^lockT/],
  [
    // A result's time as the lease would block a key for as long after a crash.
    ["ttl", "retention, how long the result is kept, or lease, how long a run's claim outlives its process"],
    /^(ttl|ttl_?ms|px)$|^durat|^expir/i,
  ],
  [["backoff"], /^retry[DIJ]/],
  // As a time, the number of tries would be a very short one.
  [["maxAttempts", "wait, a time in ms"], /retr|^attempts/i],
  [["wait"], /wait(?!u)|^acquire/i],
  [["autoExtend, true or false: it needs no time"], /^auto|^refresh|^watch/],
  [["prefix"], /^namespace/],
  [["maxSize", "limit"], /^max$|^permits|^conc|^size|^limit|^capa/],
  [["onFailed", "onEvent"], /^onErr/],
];

/** The option that is meant by another package's name, if it is among `names`, and its meaning where a name alone would mislead. */
export function nameHere(given: string, names: readonly string[]): string | undefined {
  const row = foreign.find(([, theirs]) => theirs.test(given));
  return row?.[0].find((here) => names.includes(here.split(",")[0]!));
}
