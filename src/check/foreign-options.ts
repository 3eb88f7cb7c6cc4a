/** Names here, of which the first that is an option counts, and what other packages call it. */
const foreign: readonly [here: string, given: RegExp][] = [
  ["every window backoff", /^interv|^period/],
  ["lease ttl", /^lease|^lockT/],
  ["ttl", /^(ttl|ttl_?ms|px)$|^durat|^expir/i],
  ["backoff", /^retry[DIJ]/],
  ["maxAttempts wait", /retr|^attempts/i],
  ["wait", /wait(?!u)|^acquire/i],
  ["autoExtend", /^auto|^refresh|^watch/],
  ["prefix", /^namespace/],
  ["maxSize limit", /^max$|^permits|^conc|^size|^limit|^capa/],
  ["onFailed onEvent", /^onErr/],
];

export function nameHere(given: string, names: readonly string[]): string | undefined {
  const row = foreign.find(([, theirs]) => theirs.test(given));
  return row?.[0].split(" ").find((here) => names.includes(here));
}
