import { createHash, timingSafeEqual } from "node:crypto";

/** The tokens of an endpoint. */
export interface Tokens {
  /** May do everything. */
  readonly token: string;
  /** May only read. Default: there is none. */
  readonly readOnlyToken?: string | undefined;
}

/** What a request may do. */
export type Access = "full" | "read-only";

/**
 * What the token of a request allows: of the query (`?_token=`) if it has one, else of the `Authorization` header.
 * Undefined: nothing. Only the head of the request is looked at.
 *
 * @example
 * accessOf(new Request(url, { headers: { authorization: "Bearer secret" } }), { token: "secret" }); // "full"
 */
export function accessOf(
  { url, headers }: Pick<Request, "url" | "headers">,
  { token, readOnlyToken }: Tokens,
): Access | undefined {
  const given = new URL(url).searchParams.get("_token") ?? bearer(headers.get("authorization"));
  const [full, readOnly] = [isSameSecret(given, token), isSameSecret(given, readOnlyToken)];
  if (full) return "full";
  return readOnly ? "read-only" : undefined;
}

function bearer(header: string | null): string | undefined {
  return header?.replace(/^bearer\s+/i, "").trim();
}

/** In a time that tells nothing: the digests are of one length, and every byte of them is compared. */
function isSameSecret(given: string | undefined, secret: string | undefined): boolean {
  const same = timingSafeEqual(digest(given ?? ""), digest(secret ?? ""));
  return same && given !== undefined && secret !== undefined;
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}
