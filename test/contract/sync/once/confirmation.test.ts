import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../../src/index.ts";
import { type OnceOptions, once } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, sentBy } from "../../../support/virtual-sync.ts";

// How a claim of `once` becomes a run in virtual time, and what stays of one that does not.

const unreachable = () => expect.unreachable("it must not run");

const call = (
  { redlock }: VirtualClient,
  options: Partial<OnceOptions> = {},
  routine: () => unknown = () => undefined,
) => watch(once(redlock, "n", { every: 60_000, ...options }, routine));

const isConfirmation = (command: readonly unknown[]) => command.includes("extend");

describe("a confirmation", () => {
  test("whose answers were lost is sent again, and counts for the whole interval then", async () => {
    const { runtime, client, each } = newWorld();
    const own = client();
    for (const link of own.links) {
      link.fate = (command) => (isConfirmation(command) && link.sent.length < 4 ? "reply lost" : "delivered");
    }
    const ran = call(own, {}, () => "ran");
    await runtime.advance(19);
    expect([ran.settled, sentBy(own)]).toEqual([false, [3, 3, 3]]);
    await runtime.advance(1);
    expect([ran.value, sentBy(own)]).toEqual([{ ran: true, value: "ran" }, [4, 4, 4]]);
    expect(each("PTTL", "once", "n")).toEqual([60_000, 60_000, 60_000]);
    expect(String(each("GET", "once", "n")[0])).toMatch(/^r3:/);
  });

  test("that reaches no quorum within the claim's ttl is given up, and what it stored is released", async () => {
    const { runtime, client, each } = newWorld();
    const own = client();
    for (const link of own.links.slice(1)) {
      link.fate = (command) => (isConfirmation(command) ? "refused" : "delivered");
    }
    const failed = call(own, { ttl: 100 }, unreachable);
    await runtime.advance(96);
    expect(failed.settled).toBe(false);
    await runtime.advance(2);
    expect((failed.error as QuorumError).code).toMatch(/NO_QUORUM|LOCK_LOST/);
    expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
    const next = call(client());
    await runtime.advance(0);
    expect(next.value!.ran).toBe(true);
  });

  test("that finds the claim gone is a loss, at once", async () => {
    const { runtime, client, each } = newWorld();
    const own = client();
    own.links[0]!.fate = (command) => {
      if (isConfirmation(command)) each("DEL", "once", "n");
      return "delivered";
    };
    const lost = call(own, {}, unreachable);
    await runtime.advance(0);
    expect(lost.error).toBeInstanceOf(LockLostError);
    expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
  });
});

test("the last part of a ms of a claim is not retried: timers of whole ms would not let it pass", async () => {
  const { runtime, client } = newWorld();
  const { timer } = runtime;
  runtime.timer = (ms, callback) => timer(Math.floor(ms), callback);
  const own = client();
  for (const link of own.links) link.fate = (command) => (isConfirmation(command) ? "refused" : "delivered");
  // Its validity is 47.5 ms.
  const lost = call(own, { ttl: 50 }, unreachable);
  await runtime.advance(50);
  expect(lost.error).toBeInstanceOf(QuorumError);
});

describe("foreign data", () => {
  test.each([
    ["text", "once-end", ["SET", "garbage"]],
    ["text", "once-fence", ["SET", "garbage"]],
    ["a hash", "once-end", ["HSET", "f", "x"]],
    ["a hash", "once-fence", ["HSET", "f", "x"]],
  ] as const)(
    "%s at %s is an error that names the key and the remedy",
    async (_, kind, [command, ...words]) => {
      const { runtime, client, each } = newWorld();
      each(command, kind, "n", ...words);
      const failed = call(client(), { ttl: 100 }, unreachable);
      await runtime.advance(500);
      expect(failed.error).toBeInstanceOf(QuorumError);
      expect((failed.error as Error).message).toContain(`redlock:${kind}:{n}`);
      expect((failed.error as Error).message).toContain("has foreign data: rename or delete it");
      expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
    },
  );
});
