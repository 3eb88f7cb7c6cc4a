import { describe, expect, test } from "vitest";
import type { HttpOptions } from "../../src/http/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { delivery, everywhere, type Handler, opened, post, provider } from "./stand.ts";

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

  test("locks what the delivery is about, is busy while another holds it, and has a fence", async () => {
    const entity = freshKey();
    const options: Partial<HttpOptions> = {
      provider,
      wait: 0,
      lock: (given) => [JSON.parse(new TextDecoder().decode(given?.body)).entity],
    };
    const fetch = serving((_, run) => new Response(`${run?.fence}`), options);
    const held = await at.client.redlock.acquire(entity);
    const body = JSON.stringify({ entity });
    const refused = await fetch(delivery(freshKey(), { body }));
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: "LOCK_HELD" }]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    await held.release();
    const response = await fetch(delivery(freshKey(), { body }));
    expect([response.status, Number(await response.text()) > 0]).toEqual([200, true]);
  });

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

  test("a function that names nothing is a mistake, and nothing runs", async () => {
    const lock = () => undefined as unknown as string;
    const fetch = serving(() => expect.unreachable("nothing may run"), { lock });
    const status = await fetch(post()).then(
      (response) => response.status,
      (error: unknown) => (error instanceof TypeError ? 500 : error),
    );
    expect(status).toBe(500);
  });
});
