// A Cloudflare Worker in front of a partner that allows four concurrent calls in total. However many isolates of this
// Worker run, anywhere, the fifth call waits until one of the four ends.

import { endpointsFromEnv, LockHeldError, QuorumError, Redlock } from "redlock-edge";
import { Semaphore } from "redlock-edge/sync";

interface Env extends Record<string, string | undefined> {
  readonly PARTNER_URL: string;
  /** How long a request waits for a permit, in ms; less than its client's timeout. Default 5 000. */
  readonly WAIT_MS?: string;
}

export default {
  async fetch(request: Request, env: Env, ctx: { waitUntil(promise: Promise<unknown>): void }) {
    const calls = new Semaphore(new Redlock({ endpoints: endpointsFromEnv(env) }), "partner", {
      limit: 4,
      ttl: 5_000, // after a crash the permit is free again within 5 s
      autoExtend: true, // a call that takes longer keeps its permit
      wait: Number(env.WAIT_MS ?? 5_000),
      waitUntil: ctx,
    });
    try {
      await using permit = await calls.acquire({ signal: request.signal });
      const { pathname, search } = new URL(request.url);
      const answer = await fetch(new URL(pathname + search, env.PARTNER_URL), {
        method: request.method,
        headers: { "content-type": request.headers.get("content-type") ?? "application/octet-stream" },
        body: request.body && (await request.arrayBuffer()),
        signal: permit.signal, // aborts before a fifth call could start
      });
      // Read to the end before the permit is released: the call lasts as long as the partner is sending.
      const body = await answer.arrayBuffer();
      const type = answer.headers.get("content-type") ?? "application/octet-stream";
      return new Response(body, { status: answer.status, headers: { "content-type": type } });
    } catch (error) {
      if (error instanceof LockHeldError) return tryLater("four calls are under way");
      if (error instanceof QuorumError) return tryLater("nobody can say how many calls are under way");
      throw error;
    }
  },
};

function tryLater(why: string): Response {
  return new Response(`${why}\n`, { status: 503, headers: { "retry-after": "1" } });
}
