import { inspect as textOf } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { handoff, resume } from "../../src/handoff/index.ts";
import { forgetKey, Idempotency } from "../../src/idempotency/index.ts";
import { isRedlockError, type Lock, Redlock } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { rejection } from "../../test/support/outcomes.ts";
import { seeded } from "../../test/support/seeded.ts";
import { forbidUnhandledRejections } from "../../test/support/unhandled.ts";
import { makeDigestSynchronous } from "../sim/world/digest.ts";
import { type Lie, lies } from "./lies.ts";
import { openNetwork } from "./network.ts";

// Endpoints that answer anything but the truth. If a quorum of them does, nothing is granted; if one of three does, nothing else
// happens than without it.

const native = globalThis.fetch;
// Real time would pass while a key is hashed.
const restoreDigest = makeDigestSynchronous();
afterAll(() => {
  globalThis.fetch = native;
  restoreDigest();
});

/** Everything that an error or an event contains, causes and votes included. */
const everythingOf = (emitted: unknown) =>
  textOf(emitted, { depth: 12, maxStringLength: null, maxArrayLength: null });

/** Fails when an event or an error contains a secret. */
function expectNoSecret(emitted: readonly unknown[], secrets: Iterable<string>): void {
  const text = everythingOf(emitted);
  for (const secret of secrets) expect(text.includes(secret), `${secret} in ${text}`).toBe(false);
}

/** Fails unless it is an error of this package, with one of the codes. */
function expectTyped(error: unknown, ...codes: string[]): void {
  expect(isRedlockError(error), everythingOf(error)).toBe(true);
  expect(codes, everythingOf(error)).toContain((error as { code: string }).code);
}

const dialect = fc.constantFrom("upstash", "redis-8.4", "redis");
/** One endpoint or three, with fences or without, one resource or two. */
const options = fc.record({ fencing: fc.boolean(), several: fc.boolean(), dialect });

interface Given {
  readonly fencing: boolean;
  readonly several: boolean;
  readonly dialect: "upstash" | "redis-8.4" | "redis";
}

/** Clients of a network, what they emit, and calls of which each must have a certain outcome. */
function open(count: number, { fencing, several, dialect: spoken }: Given) {
  const network = openNetwork(count, spoken);
  const { runtime, endpoints, secrets } = network;
  const emitted: unknown[] = [];
  const onEvent = (event: unknown) => void emitted.push(event);
  const redlock = new Redlock({
    endpoints,
    runtime,
    fencing,
    wait: 0,
    ttl: 600_000,
    timeout: 1_000,
    onEvent,
  });
  const idempotency = new Idempotency(redlock, { wait: 0, lease: 10_000, timeout: 1_000, onEvent });
  const resources = several ? ["a", "b"] : "a";
  const resultOf = <Value>(call: () => Promise<Value>) => runtime.settle(call());
  const errorOf = async (call: () => Promise<unknown>, ...codes: string[]) => {
    const error = await resultOf(() => rejection(call()));
    expectTyped(error, ...codes);
    emitted.push(error);
  };
  const close = async () => {
    await runtime.advance(60_000);
    expectNoSecret(emitted, secrets);
  };
  return { network, redlock, idempotency, resources, resultOf, errorOf, close };
}

async function believeNoQuorum(given: Given, told: readonly (readonly Lie[])[]): Promise<void> {
  const { network, redlock, idempotency, resources, resultOf, errorOf, close } = open(told.length, given);
  const lock: Lock = await resultOf(() => redlock.acquire(resources));
  const passed = await resultOf(() => redlock.acquire("c"));
  const message = await resultOf(() => handoff(passed));
  await resultOf(() => idempotency.run("done", () => 1));
  // Of three, one tells the truth.
  network.liars = told.length === 3 ? [told[0], told[1], undefined] : told;
  let runs = 0;
  await errorOf(() => redlock.acquire(given.several ? ["d", "e"] : "d"), "NO_QUORUM");
  await errorOf(() => redlock.tryAcquire("d"), "NO_QUORUM");
  await errorOf(() => redlock.using("d", () => ++runs), "NO_QUORUM");
  await errorOf(() => lock.extend(), "NO_QUORUM");
  await errorOf(() => lock.verify(), "NO_QUORUM");
  await errorOf(() => resume(redlock, message), "NO_QUORUM");
  await errorOf(() => inspect(redlock, "a"), "NO_QUORUM");
  await errorOf(() => forceRelease(redlock, "a"), "NO_QUORUM");
  await errorOf(() => forgetKey(idempotency, "done"), "NO_QUORUM");
  // What is no answer may be a text, which another run may have written; and one of three has the record.
  const codes = ["NO_QUORUM", "RECORD_CORRUPT", "IN_PROGRESS"];
  await errorOf(() => idempotency.run("new", () => ++runs), ...codes);
  await errorOf(() => idempotency.run("done", () => ++runs), ...codes);
  expect(runs).toBe(0);
  expect(await resultOf(() => lock.release())).toBe(undefined);
  await close();
}

async function ignoreOne(given: Given, told: readonly Lie[]): Promise<void> {
  const { network, redlock, idempotency, resources, resultOf, errorOf, close } = open(3, given);
  network.liars = [told];
  const lock = await resultOf(() => redlock.acquire(resources));
  expect(await resultOf(() => redlock.tryAcquire("a"))).toBe(null);
  await resultOf(() => lock.extend());
  expect(await resultOf(() => lock.verify())).toBe(true);
  expect(await resultOf(() => inspect(redlock, "a"))).toMatchObject({ held: true });
  expect(await resultOf(() => lock.release())).toBe(true);
  const next = await resultOf(() => redlock.acquire(resources));
  if (given.fencing) expect(next.fence).toBeGreaterThan(lock.fence!);
  const message = await resultOf(() => handoff(next));
  const resumed = await resultOf(() => resume(redlock, message));
  await errorOf(() => resume(redlock, message), "LOCK_LOST");
  expect(await resultOf(() => forceRelease(redlock, "a"))).toBe(true);
  expect(await resultOf(() => resumed.verify())).toBe(false);
  const run = (value: number) => resultOf(() => idempotency.run("key", () => value));
  expect(await run(1)).toEqual({ status: "executed", value: 1 });
  expect(await run(2)).toEqual({ status: "replayed", value: 1 });
  await close();
}

describe("endpoints that answer anything", () => {
  forbidUnhandledRejections();

  test("are no quorum: nothing is granted, extended, freed or run", async () => {
    const told = fc.oneof(fc.tuple(lies), fc.tuple(lies, lies, lies));
    await fc.assert(fc.asyncProperty(options, told, believeNoQuorum), seeded(40));
  });

  test("change nothing where the others are a quorum", async () => {
    await fc.assert(fc.asyncProperty(options, lies, ignoreOne), seeded(40));
  });
});
