/**
 * The options of a POST to a server. They see to it that it reaches the server, and no other:
 *
 * - `redirect`: a token must never follow a redirect.
 * - `next`: the `fetch` of Next.js caches a request, and answers the same one from its cache, where a route says
 *   `fetchCache = "auto"`, `"default-cache"` or `"force-cache"`: an extension that no server has seen would be granted.
 *   `revalidate: 0` and `cache: "no-store"` do not prevent the last; `internal` passes every cache. Others ignore it.
 *
 * No `cache`, no `keepalive`: Workers refuse them.
 */
export function postOptions(headers: HeadersInit, signal: AbortSignal, body: string | null): RequestInit {
  const next = { internal: true };
  // A literal: in Node 20 it takes 100 times as long to spread a constant and then add to it.
  const options = { method: "POST", headers, body, signal, redirect: "manual", next } as const;
  return options;
}
