/**
 * What every request to a server says beside its own: it must reach the server.
 *
 * - `redirect`: a token must never follow a redirect.
 * - `next`: the `fetch` of Next.js caches a request, and answers the same one from its cache, where a route says
 *   `fetchCache = "auto"`, `"default-cache"` or `"force-cache"`: an extension that no server has seen would be granted.
 *   `revalidate: 0` and `cache: "no-store"` do not prevent the last; `internal` passes every cache. Others ignore it.
 *
 * No `cache`, no `keepalive`: Workers refuse them.
 */
export const fetchOptions: RequestInit & { readonly next: { readonly internal: true } } = {
  redirect: "manual",
  next: { internal: true },
};
