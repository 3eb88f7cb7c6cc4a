import { fingerprintOf } from "../idempotency/digest.ts";

// Senders sign no path, and frameworks match a path in several spellings. So handlers have names, and paths are only
// compared.

/** Undefined for a pattern with a wildcard, because it stands for several routes. */
export function handlerOf(pattern: unknown): string | undefined {
  if (typeof pattern !== "string" || pattern.includes("*")) return undefined;
  // Fastify makes two routes of one, with and without a slash at the end.
  return withoutSpareSlashes(pattern) || undefined;
}

/** For a handler without a name. */
export async function withPath({ url }: Request, own: string | Uint8Array | undefined): Promise<string> {
  return JSON.stringify([plainPath(new URL(url).pathname), await fingerprintOf(own)]);
}

function plainPath(path: string): string {
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // Not UTF-8: compared as it is.
  }
  return withoutSpareSlashes(decoded).toLowerCase();
}

function withoutSpareSlashes(path: string): string {
  return path.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
}
