// How the page gets the token, and how it asks.

const name = "redis-rest-local-token";

/** The token of the address's fragment, else the one of this tab; taken out of the address, so that history lacks it. */
export function takeToken(): string | undefined {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(name, given);
    history.replaceState(null, "", location.pathname);
  }
  return given ?? sessionStorage.getItem(name) ?? undefined;
}

export function forgetToken(): void {
  sessionStorage.removeItem(name);
}

/** The server refuses the token. */
export class TokenRefused extends Error {
  override readonly name = "TokenRefused";
}

/** Sends a request with the token. Rejects, with the server's words, for any status but 200. */
export async function ask(
  token: string,
  path: string,
  init: { method?: string; body?: unknown } = {},
): Promise<Response> {
  const { method = "GET", body } = init;
  const response = await fetch(path, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (response.ok) return response;
  if (response.status === 401) throw new TokenRefused();
  const { error } = (await response.json()) as { error: string };
  throw new Error(error.replace(/^ERR /, ""));
}
