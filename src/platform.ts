/**
 * Whether the calls of a process may wait for each other's requests and timers. On Workers, and on edge platforms made like them, they
 * may not: what one invocation has opened ends with it, and another must not use it.
 */
export function sharesRequests(): boolean {
  const { navigator, EdgeRuntime } = globalThis as {
    navigator?: { userAgent?: string };
    EdgeRuntime?: unknown;
  };
  return navigator?.userAgent !== "Cloudflare-Workers" && EdgeRuntime === undefined;
}
