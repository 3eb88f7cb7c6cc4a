import { describe, expect, test } from "vitest";
import type { HttpOptions } from "../../src/http/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { everywhere, type Handler, opened, post } from "./stand.ts";

// Requests that lock what they are about.

describe.each(everywhere)("a request with a lock: %s", (_title, stand, { open }) => {
  const at = opened({ open });

  const serving = (handler: Handler, options: Partial<HttpOptions>) =>
    stand(handler, { redlock: at.client.redlock, ...options });
  const answer = async (response: Response) => [
    response.status,
    response.headers.get("idempotent-replayed"),
    await response.text(),
  ];

  test("is answered 409 while another holds the lock, and leaves its key free", async () => {
    const lock = freshKey();
    const key = freshKey();
    const held = await at.client.redlock.acquire(lock, { note: "for-operators" });
    const fetch = serving(() => new Response("done"), { lock });
    const refused = await fetch(post(key));
    expect(refused.status).toBe(409);
    // What a holder says of itself is not for strangers.
    expect(`${JSON.stringify([...refused.headers])}${await refused.text()}`).not.toContain("for-operators");
    await held.release();
    expect(await answer(await fetch(post(key)))).toEqual([200, null, "done"]);
    const again = await at.client.redlock.acquire(lock);
    // A duplicate needs no lock.
    expect(await answer(await fetch(post(key)))).toEqual([200, "true", "done"]);
    await again.release();
  });
});
