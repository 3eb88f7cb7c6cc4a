// Next.js reads every body for it, and cuts those beyond `proxyClientMaxBodySize`.
export function proxy() {
  return undefined;
}
