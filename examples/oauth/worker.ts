// Calls a partner's API with an OAuth token. When the token has expired, one request refreshes it, and the others use
// the new one: many servers accept each refresh token only once, and log the account out when it is used twice.

import type { D1Database } from "@cloudflare/workers-types";
import { endpointsFromEnv, Redlock } from "redlock-edge";

interface Env {
  readonly DB: D1Database;
  readonly CLIENT_ID: string;
  readonly CLIENT_SECRET: string;
}

interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  /** ms since 1970 */
  readonly expires_at: number;
}

export default {
  async fetch(_request: Request, env: Env): Promise<Response> {
    const token = await accessToken(env, "acme");
    const orders = await fetch("https://api.partner.example/orders", {
      headers: { authorization: `Bearer ${token}` },
    });
    return new Response(await orders.text(), { status: orders.status });
  },
};

async function accessToken(env: Env, account: string): Promise<string> {
  const stored = await env.DB.prepare("SELECT * FROM tokens WHERE account = ?1")
    .bind(account)
    .first<Tokens>();
  if (stored && isValid(stored)) return stored.access_token; // the usual case: no lock, no Redis command
  const redlock = new Redlock({ endpoints: endpointsFromEnv(env) });
  return redlock.using(`oauth:${account}`, { wait: 10_000, fencing: true }, async ({ fence, signal }) => {
    // Claims the row: from now on, an earlier holder that was delayed cannot write its tokens any more.
    const claimed = await env.DB.prepare(
      "UPDATE tokens SET fence = ?2 WHERE account = ?1 AND fence < ?2 RETURNING *",
    )
      .bind(account, fence)
      .first<Tokens>();
    if (!claimed) throw new Error(`no tokens of ${account}, or a later holder has them`);
    if (isValid(claimed)) return claimed.access_token; // another request has refreshed it while this one waited
    const fresh = await refresh(env, claimed.refresh_token, signal);
    await env.DB.prepare(
      "UPDATE tokens SET access_token = ?3, refresh_token = ?4, expires_at = ?5 WHERE account = ?1 AND fence = ?2",
    )
      .bind(account, fence, fresh.access_token, fresh.refresh_token, fresh.expires_at)
      .run();
    return fresh.access_token;
  });
}

function isValid({ expires_at }: Tokens): boolean {
  return expires_at > Date.now() + 60_000;
}

async function refresh(env: Env, refresh_token: string, signal: AbortSignal): Promise<Tokens> {
  const answer = await fetch("https://login.partner.example/token", {
    method: "POST",
    body: new URLSearchParams({
      grant_type: "refresh_token",
      refresh_token,
      client_id: env.CLIENT_ID,
      client_secret: env.CLIENT_SECRET,
    }),
    signal, // aborts when the lock is lost
  });
  if (!answer.ok) throw new Error(`the token server answered ${answer.status}`);
  const fresh = (await answer.json()) as { access_token: string; refresh_token?: string; expires_in: number };
  // A server that does not rotate refresh tokens returns none.
  return { refresh_token, ...fresh, expires_at: Date.now() + fresh.expires_in * 1_000 };
}
