/**
 * All keys of a resource share a hash tag, so that Redis Cluster keeps them in one slot. No two resources, kinds or
 * prefixes share a key, because prefix and kind contain no brace. See `StoredKey` in `inspect/stored-key.ts`.
 */
export function keyOf(prefix: string, kind: string, resource: string): string {
  // Redis Cluster looks at the first brace only, and ignores an empty tag.
  const tag = /^[^{]*\{([^}]+)\}/.exec(resource)?.[1];
  if (tag) return `${prefix}:${kind}:{${tag}}:${resource}`;
  return `${prefix}:${kind}:{${resource.replace(/[%}]/g, encodeURIComponent)}}`;
}
