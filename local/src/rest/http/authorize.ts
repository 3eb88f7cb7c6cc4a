/** The tokens of an endpoint. */
export interface Tokens {
  /** Allows every command. */
  readonly token: string;
  /** Allows only reading commands. Default: none. */
  readonly readOnlyToken?: string | undefined;
}

/** The commands that a request may run: all, or only reading ones. */
export type Access = "full" | "read-only";

/**
 * What the token of a request allows; undefined without a valid token. The token of the query (`?_token=`) takes
 * precedence over the `Authorization` header. The body is not read.
 *
 * @example
 * accessOf(new Request(url, { headers: { authorization: "Bearer secret" } }), { token: "secret" }); // "full"
 */
export function accessOf(
  { url, headers }: Pick<Request, "url" | "headers">,
  { token, readOnlyToken }: Tokens,
): Access | undefined {
  const given =
    new URL(url).searchParams.get("_token") ??
    headers
      .get("authorization")
      ?.replace(/^bearer\s+/i, "")
      .trim();
  if (given === token) return "full";
  return given !== undefined && given === readOnlyToken ? "read-only" : undefined;
}
