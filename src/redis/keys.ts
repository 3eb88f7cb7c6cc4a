/**
 * The key of one `kind` for a resource: see `StoredKey` in `inspect/stored-key.ts`, which reads kinds of lower-case letters and
 * hyphens only, and `slot:0`, `slot:1`, … of a semaphore. All keys of a resource share a hash tag, so that Redis
 * Cluster keeps them in one slot. A resource with a `{tag}` of its own keeps it. No two resources, kinds or prefixes share a
 * key: the part before the first brace is the prefix and the kind, because neither contains a brace. The rest identifies the
 * resource.
 */
export function keyOf(prefix: string, kind: string, resource: string): string {
  // Redis Cluster looks at the first brace only, and ignores an empty tag.
  const tag = /^[^{]*\{([^}]+)\}/.exec(resource)?.[1];
  if (tag) return `${prefix}:${kind}:{${tag}}:${resource}`;
  return `${prefix}:${kind}:{${resource.replace(/[%}]/g, encodeURIComponent)}}`;
}
