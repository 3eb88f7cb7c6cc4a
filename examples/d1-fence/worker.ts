// Takes an amount from an account: the lock keeps others away, and the fence in D1 refuses a holder that was paused.

import type { D1Database } from "@cloudflare/workers-types";
import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";

interface Env {
  readonly DB: D1Database;
}

export default {
  async fetch(
    request: Request,
    env: Env,
    ctx: { waitUntil(work: Promise<unknown>): void },
  ): Promise<Response> {
    const { account, amount } = (await request.json()) as { account: string; amount: number };
    const redlock = new Redlock({ endpoints: endpointsFromEnv(env), waitUntil: ctx });
    try {
      return await redlock.using(`account:${account}`, { wait: 2_000, fencing: true }, ({ fence }) =>
        pay(env.DB, { account, amount, fence }),
      );
    } catch (error) {
      if (error instanceof LockHeldError) return Response.json({ error: "busy" }, { status: 409 });
      throw error;
    }
  },
};

interface Payment {
  readonly account: string;
  readonly amount: number;
  readonly fence: number;
}

async function pay(db: D1Database, { account, amount, fence }: Payment): Promise<Response> {
  // 1. Claim the row. From now on an older holder cannot write, so the balance that this reads stays true.
  const row = await db
    .prepare("UPDATE accounts SET fence = ?2 WHERE id = ?1 AND fence < ?2 RETURNING balance")
    .bind(account, fence)
    .first<{ balance: number }>();
  if (!row) return Response.json({ error: "no such account, or a later holder has it" }, { status: 409 });
  // 2. Decide. Anything that takes time or calls a service belongs here.
  const balance = row.balance - amount;
  if (balance < 0) return Response.json({ error: "not enough" }, { status: 422 });
  // 3. Write, only if this is still the last holder.
  const { meta } = await db
    .prepare("UPDATE accounts SET balance = ?3 WHERE id = ?1 AND fence = ?2")
    .bind(account, fence, balance)
    .run();
  if (meta.changes === 0) return Response.json({ error: "a later holder has it" }, { status: 409 });
  return Response.json({ balance, fence });
}
