import { describe, expect, test } from "vitest";
import { handoff, resume } from "../../../src/handoff/index.ts";
import { LockHeldError, LockLostError, QuorumError } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";

// What a holder says of itself stands with its nonce, whatever becomes of the requests. In virtual time; the timeout of a
// request is 100 ms.

const note = 'worker 7 imports "shop"\n🐘';
const all = <Value>(value: Value) => new Array<Value>(3).fill(value);
const free = all(null);

describe.each([
  ["redis", {}],
  ["redis", { fencing: true }],
  ["upstash", {}],
  ["upstash", { fencing: true }],
] as const)("in the dialect %s with %j", (dialect, options) => {
  const given = { ttl: 30_000, note, ...options };

  test("it stands beside the nonce from acquire to release, and costs no request and no command", async () => {
    const { runtime, client, values, endpoints } = virtualWorld({ dialect });
    const logs = () => endpoints.map(({ log }) => log.map(({ billed }) => billed));
    const use = async (saying: string | undefined) => {
      const { redlock, links, events } = client();
      const before = logs();
      const lock = await redlock.acquire("r", { ...given, note: saying });
      const value = saying === undefined ? lock.token : `${lock.token} ${saying}`;
      expect(values("r")).toEqual(all(value));
      endpoints[2]!.engine.execute(["FLUSHALL"]);
      await lock.extend(20_000);
      await runtime.advance(0);
      // It was restored.
      expect(values("r")).toEqual(all(value));
      expect([await lock.verify(), await lock.release()]).toEqual([true, true]);
      expect(values("r")).toEqual(free);
      expect(events.find(({ type }) => type === "acquired")).toMatchObject({ note: saying });
      const billed = logs().map((log, index) => log.slice(before[index]!.length));
      return [billed, links.map(({ sent }) => sent.length)];
    };
    expect(await use(note)).toEqual(await use(undefined));
  });

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

  test("a handoff keeps it, and of two that resume the lock one gets it", async () => {
    const { runtime, client, values } = virtualWorld({ dialect });
    const json = JSON.parse(JSON.stringify(await handoff(await client().redlock.acquire("r", given))));
    const receiver = client();
    const calls = [receiver, client()].map(({ redlock }) => watch(resume(redlock, json)));
    await runtime.advance(500);
    const [lock] = calls.flatMap(({ value }) => value ?? []);
    expect(calls.flatMap(({ error }) => error ?? [])).toEqual([expect.any(LockLostError)]);
    expect(values("r")).toEqual(all(`${lock!.token} ${note}`));
    expect(receiver.events.filter(({ type }) => type === "acquired")).toMatchObject(lock ? [{ note }] : []);
    expect(await inspect(client().redlock, "r")).toMatchObject({ held: true, note });
    expect([await lock!.extend(), await lock!.release()]).toEqual([expect.any(Number), true]);
    expect(values("r")).toEqual(free);
  });

  test("a resume that fails puts it back with the nonce", async () => {
    const { runtime, client, values } = virtualWorld({ dialect });
    const json = await handoff(await client().redlock.acquire("r", given));
    const unlucky = client();
    for (const link of unlucky.links.slice(0, 2))
      link.fate = () => (link.sent.length === 2 ? "reply lost" : "delivered");
    const failed = watch(resume(unlucky.redlock, json));
    await runtime.advance(200);
    expect(failed.error).toBeInstanceOf(QuorumError);
    expect(values("r")).toEqual(all(json.value));
    expect(await (await resume(client().redlock, json)).release()).toBe(true);
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
