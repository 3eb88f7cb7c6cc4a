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

test.each([
  ["once-end", ["SET", "garbage"]],
  ["once-fence", ["SET", "garbage"]],
  ["once-end", ["HSET", "f", "x"]],
  ["once-fence", ["HSET", "f", "x"]],
] as const)(
  "foreign data at %s is an error that names the key and the remedy: %j",
  async (kind, [command, ...words]) => {
    const { runtime, client, each } = newWorld();
    each(command, kind, "n", ...words);
    const failed = call(client(), { ttl: 100 }, unreachable);
    await runtime.advance(500);
    expect(failed.error).toBeInstanceOf(QuorumError);
    expect(String(failed.error)).toContain(`redlock:${kind}:{n}`);
    expect(String(failed.error)).toContain("has foreign data: rename or delete it");
    expect(each("EXISTS", "once", "n")).toEqual([0, 0, 0]);
  },
);
