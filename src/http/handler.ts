import { fingerprintOf } from "../idempotency/digest.ts";

// Whose work a delivery is. Senders sign no path, and frameworks match it in several spellings: so a handler has a name, and
// a path is only compared.

/** The declared pattern of a route as the name of its handler. One with a wildcard stands for several routes: undefined. */
export function handlerOf(pattern: unknown): string | undefined {
  if (typeof pattern !== "string" || pattern.includes("*")) return undefined;
  // Fastify makes two routes of one: with a slash at the end and without.
  return withoutSpareSlashes(pattern) || undefined;
}

/** The fingerprint of a delivery to a handler without a name: its path, in whatever spelling, and what else is compared. */
export async function withPath({ url }: Request, own: string | Uint8Array | undefined): Promise<string> {
  return JSON.stringify([plainPath(new URL(url).pathname), await fingerprintOf(own)]);
}

/** The path in the one spelling that stands for all that a framework may match. */
function plainPath(path: string): string {
  let decoded = path;
  try {
    decoded = decodeURIComponent(path);
  } catch {
    // No UTF-8: it is compared as it is.
  }
  return withoutSpareSlashes(decoded).toLowerCase();
}

function withoutSpareSlashes(path: string): string {
  return path.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
}
