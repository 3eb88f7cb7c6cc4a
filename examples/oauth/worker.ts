// Calls a partner's API with an OAuth token. When the token has expired, one request refreshes it, and the others use
// the new one: many servers accept each refresh token only once, and log the account out when it is used twice.

import type { D1Database } from "@cloudflare/workers-types";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { refreshOnce } from "redlock-edge/sync";

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
  const redlock = new Redlock({ endpoints: endpointsFromEnv(env) });
  const { access_token } = await refreshOnce<Tokens>(redlock, `oauth:${account}`, {
    wait: 10_000,
    async read() {
      const sql = "SELECT access_token, refresh_token, expires_at FROM tokens WHERE account = ?1";
      const stored = await env.DB.prepare(sql).bind(account).first<Tokens>();
      if (!stored) throw new Error(`no tokens of ${account}`);
      return stored;
    },
    // The usual case: no lock, no Redis command.
    isFresh: ({ expires_at }) => expires_at > Date.now() + 60_000,
    refresh: ({ refresh_token }, { signal }) => refresh(env, refresh_token, signal),
    async write({ access_token, refresh_token, expires_at }, { fence }) {
      const sql = `UPDATE tokens SET access_token = ?3, refresh_token = ?4, expires_at = ?5, fence = ?2
        WHERE account = ?1 AND fence < ?2`;
      const written = env.DB.prepare(sql).bind(account, fence, access_token, refresh_token, expires_at);
      return (await written.run()).meta.changes > 0;
    },
  });
  return access_token;
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
    signal,
  });
  if (!answer.ok) throw new Error(`the token server answered ${answer.status}`);
  const fresh = (await answer.json()) as { access_token: string; refresh_token?: string; expires_in: number };
  // A server that does not rotate refresh tokens returns none.
  return { refresh_token, ...fresh, expires_at: Date.now() + fresh.expires_in * 1_000 };
}
