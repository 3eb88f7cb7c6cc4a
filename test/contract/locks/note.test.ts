import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";

// What a holder says of itself stands with its nonce, whatever becomes of the requests. In virtual time; the timeout of a
// request is 100 ms.

const note = 'worker 7 imports "shop"\n🐘';

describe.each([
  ["redis", {}],
  ["redis", { fencing: true }],
  ["upstash", {}],
  ["upstash", { fencing: true }],
] as const)("in the dialect %s with %j", (dialect, options) => {
  const given = { ttl: 30_000, note, ...options };

  test("who is refused learns of it, and of nothing else", async () => {
    const { runtime, client } = virtualWorld({ dialect });
    const lock = await client().redlock.acquire("r", given);
    await runtime.advance(1_000);
    const other = client({ ...options });
    const call = watch(other.redlock.acquire("r", { wait: 15 }));
    await runtime.advance(30);
    const { holder, retryAfter, message } = call.error as LockHeldError;
    // A plain lock asks only whether it is free.
    const isKnown = "fencing" in options;
    expect(holder).toEqual(isKnown ? { note, expiresIn: retryAfter } : undefined);
    if (isKnown) expect(retryAfter).toBeGreaterThan(28_900);
    const contended = other.events.filter(({ type }) => type === "contended");
    for (const event of contended) expect(event).toMatchObject({ holder: isKnown ? { note } : undefined });
    expect(message).not.toContain("worker");
    expect(JSON.stringify([holder, other.events])).not.toContain(lock.token);
  });
});

test("without one, and of a value that is none of a lock's, nothing is shown", async () => {
  const { client, put, runtime } = virtualWorld();
  put("r", [0, 1, 2], "another library's value, with spaces");
  const call = watch(client().redlock.acquire("r", { wait: 0, fencing: true }));
  await runtime.advance(0);
  expect((call.error as LockHeldError).holder).toEqual({ note: undefined, expiresIn: 60_000 });
  expect((await inspect(client().redlock, "r")).note).toBeUndefined();
});

test("where no holder has a quorum, none is shown", async () => {
  const { client, put, runtime } = virtualWorld();
  for (const index of [0, 1, 2]) put("r", [index], `t${`${index}`.repeat(32)} note ${index}`);
  const call = watch(client().redlock.acquire("r", { wait: 0, fencing: true }));
  await runtime.advance(0);
  expect(call.error).toBeInstanceOf(LockHeldError);
  expect((call.error as LockHeldError).holder).toBeUndefined();
  expect(await inspect(client().redlock, "r")).not.toHaveProperty("note");
});

test("of several resources, the holder of the one in the way is shown", async () => {
  const { client, runtime } = virtualWorld();
  await client().redlock.acquire("b", { note });
  const call = watch(client().redlock.acquire(["a", "b"], { wait: 0 }));
  await runtime.advance(0);
  expect(call.error).toMatchObject({ holder: { note, expiresIn: expect.any(Number) } });
});
