// The little that the simulator knows by itself of what the library stores and decides.

/** The smallest number of endpoints of which any two sets share one. */
export function quorumOf(endpoints: number): number {
  return Math.floor(endpoints / 2) + 1;
}

/** The smallest number of refusals that leaves no quorum. */
export function vetoOf(endpoints: number): number {
  return endpoints - quorumOf(endpoints) + 1;
}

/** What a map has for a key; if it has nothing, what is made for it from now on. */
export function entryOf<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** The key of a kind for a resource, as docs/internals/algorithm.md#keys has it. No name here needs an escape. */
export function keyOf(kind: string, resource: string): string {
  const [, tag] = /\{(.+)\}/.exec(resource) ?? [];
  return tag === undefined ? `redlock:${kind}:{${resource}}` : `redlock:${kind}:{${tag}}:${resource}`;
}
