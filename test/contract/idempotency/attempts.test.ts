import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors/errors.ts";
import { DeadKeyError, type IdempotencyOptions } from "../../../src/idempotency/index.ts";
import type { Fate } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { never, type Runner, records, runner, silence, textsOf, ttls } from "../../support/virtual-runs.ts";

// Counting the runs of a key in virtual time: what the count is at each endpoint, and what is taken back. The timeout of
// a request is 100 ms.

const maxAttempts = 3;

type Command = readonly (string | number)[];
const isCount = (command: Command) => command.some((word) => String(word).startsWith("redlock:tries:"));
/** Writes a count of more than one over another. */
const isRaise = (command: Command) => isCount(command) && command.includes("keep");

/** The counts by endpoint, without the tokens; null where there is none. */
const counts = (world: VirtualWorld) =>
  textsOf(world, "tries").map((text) => (text === null ? null : Number(text.split(" ")[2])));

/** A run that begins and never ends, except at the endpoints that it does not reach; its lease is over at once. */
async function crash(world: VirtualWorld, silent: readonly number[] = []) {
  const client = runner(world, { lease: 1_000, wait: 5_000, maxAttempts: 100 });
  for (const index of silent) silence(client.links.slice(index, index + 1));
  let hasBegun = false;
  const call = watch(
    client.idempotency.run("key", () => {
      hasBegun = true;
      silence(client.links);
      return new Promise(() => undefined);
    }),
  );
  await client.started();
  await world.runtime.advance(1_000);
  expect([hasBegun, call.settled]).toEqual([true, false]);
  expect(records(world)).toEqual([null, null, null]);
}

/** A client of which the commands of one kind have another fate, in each endpoint once. */
function spoiling(
  world: VirtualWorld,
  which: (command: Command) => boolean,
  fates: readonly Fate[],
  options: IdempotencyOptions = {},
): Runner {
  const client = runner(world, { maxAttempts, ...options });
  client.links.forEach((link, index) => {
    link.fate = (command) => {
      if (!which(command)) return "delivered";
      link.fate = () => "delivered";
      return fates[index]!;
    };
  });
  return client;
}

describe("the count of a key", () => {
  test("is one higher with each run that begins, at every endpoint, and lasts for the retention", async () => {
    const world = virtualWorld();
    await crash(world);
    expect(counts(world)).toEqual([1, 1, 1]);
    await crash(world);
    expect(counts(world)).toEqual([2, 2, 2]);
    expect(ttls(world, "tries")).toEqual([59_000, 59_000, 59_000]);
    expect(new Set(textsOf(world, "tries")).size).toBe(1);
  });

  test("makes it dead once there are as many as allowed, and nothing is written then", async () => {
    const world = virtualWorld();
    for (let time = 0; time < maxAttempts; time += 1) await crash(world);
    const before = textsOf(world, "tries");
    const { idempotency, events, links, sent } = runner(world, { maxAttempts, wait: 10_000 });
    const { error } = await outcomeOf(idempotency.run("key", never));
    expect(error).toBeInstanceOf(DeadKeyError);
    expect(error).toMatchObject({ key: "key", attempts: maxAttempts });
    expect(events.map(({ type }) => type)).toEqual(["dead"]);
    expect(textsOf(world, "tries")).toEqual(before);
    expect(records(world)).toEqual([null, null, null]);
    expect(links.flatMap(({ sent }) => sent).some(isRaise)).toBe(false);
    // To begin, to count, and to free its claim.
    expect(sent()).toBe(9);
  });

  test.each([0, 1])("goes when a run fails, after %i others", async (crashes) => {
    const world = virtualWorld();
    for (let time = 0; time < crashes; time += 1) await crash(world);
    const { idempotency } = runner(world, { maxAttempts });
    await outcomeOf(idempotency.run("key", () => Promise.reject(new Error("declined"))));
    expect(counts(world)).toEqual([null, null, null]);
  });
});

test.each<Fate>(["refused", "reply lost"])(
  "a run that cannot be counted does not begin, and does not count: %s",
  async (fate) => {
    const world = virtualWorld();
    const { idempotency, events } = spoiling(world, isCount, [fate, fate, "delivered"]);
    const { error } = await outcomeOf(idempotency.run("key", never));
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual(["error", "error", "granted"]);
    expect(events.map(({ type }) => type)).toEqual(["unavailable"]);
    expect(counts(world)).toEqual([null, null, null]);
    expect(records(world)).toEqual([null, null, null]);
  },
);

test.each<Fate>(["refused", "reply lost"])(
  "a run whose count cannot be raised leaves the count of the others: %s",
  async (fate) => {
    const world = virtualWorld();
    await crash(world);
    const { idempotency } = spoiling(world, isRaise, [fate, fate, "delivered"]);
    const { error } = await outcomeOf(idempotency.run("key", never));
    expect((error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual(["error", "error", "granted"]);
    expect([counts(world), records(world)]).toEqual([
      [1, 1, 1],
      [null, null, null],
    ]);
  },
);
