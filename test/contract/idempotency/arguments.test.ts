import { describe, expect, test } from "vitest";
import { withIdempotency } from "../../../src/http/index.ts";
import {
  forgetKey,
  Idempotency,
  type IdempotencyOptions,
  inspectKey,
  type RunOptions,
} from "../../../src/idempotency/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { runner, ttls } from "../../support/virtual-runs.ts";

// Wrong arguments: the error names what is wrong, and nothing was sent.

const { redlock, links } = virtualWorld().client();
const idempotency = new Idempotency(redlock);
const handler = () => expect.unreachable("nothing may run");
/** What the compiler would refuse. */
const wrong = (value: unknown) => value as never;
const run = (options: object) => () => idempotency.run("k", options as RunOptions<never>, handler);
const answer = (options: object) => {
  const init = { method: "POST", headers: { "idempotency-key": "k" } };
  return withIdempotency(new Request("https://a.example/", init), handler, { redlock, ...options });
};

async function expectRefused(call: () => Promise<unknown>, type: typeof TypeError, message: RegExp) {
  const { error } = await outcomeOf(call());
  expect(error).toBeInstanceOf(type);
  expect(String(error)).toMatch(message);
  expect(links.flatMap(({ sent }) => sent)).toEqual([]);
}

test.each<[string, () => Promise<unknown>, typeof TypeError, RegExp]>([
  ["an empty key", () => idempotency.run("", handler), RangeError, /key/],
  ["a key that is not a string", () => idempotency.run(wrong(42), handler), TypeError, /key.*number/],
  ["no key", () => idempotency.run(wrong(undefined), handler), TypeError, /key.*missing/],
  ["no handler", () => idempotency.run("k", wrong(undefined)), TypeError, /handler.*missing/],
  ["a handler that is none", () => idempotency.run("k", {}, wrong("x")), TypeError, /handler.*"x"/],
  ["lease 9", run({ lease: 9 }), RangeError, /9/],
  ["lease 10.5", run({ lease: 10.5 }), RangeError, /10\.5/],
  ["retention below the lease", run({ lease: 30_000, retention: 29_999 }), RangeError, /retention.*29999/],
  ["wait −1", run({ wait: -1 }), RangeError, /wait.*-1/],
  ["timeout 0", run({ timeout: 0 }), RangeError, /timeout.*0/],
  ["maxHold NaN", run({ maxHold: NaN }), RangeError, /maxHold.*NaN/],
  ["deadline NaN", run({ deadline: NaN }), RangeError, /deadline.*NaN/],
  ["signal {}", run({ signal: {} }), TypeError, /signal/],
  ["onEvent 1", run({ onEvent: 1 }), TypeError, /onEvent.*number/],
  ["fingerprint {}", run({ fingerprint: {} }), TypeError, /./],
  ["maxAttempts 0", run({ maxAttempts: 0 }), RangeError, /maxAttempts/],
  ["maxAttempts 1.5", run({ maxAttempts: 1.5 }), RangeError, /maxAttempts/],
  ["maxAttempts Infinity", run({ maxAttempts: Infinity }), RangeError, /maxAttempts/],
  ["maxAttempts '3'", run({ maxAttempts: "3" }), TypeError, /maxAttempts/],
  ["maxAttempts null", run({ maxAttempts: null }), TypeError, /maxAttempts/],
  ["maxResult 999", run({ maxResult: 999 }), RangeError, /maxResult/],
  ["maxResult 4 000 001", run({ maxResult: 4_000_001 }), RangeError, /maxResult/],
  ["maxResult 1 000.5", run({ maxResult: 1_000.5 }), RangeError, /maxResult/],
  ["maxResult '1000'", run({ maxResult: "1000" }), TypeError, /maxResult/],
])("%s is refused before anything is sent", async (_what, call, type, message) => {
  await expectRefused(call, type, message);
});

test.each([
  ["", {}, RangeError, /key/],
  [wrong(7), {}, TypeError, /key.*number/],
  ["k", { timeout: 0 }, RangeError, /timeout.*0/],
])("an operator's %j, %j is refused before anything is sent", async (key, options, type, message) => {
  for (const call of [inspectKey, forgetKey]) {
    await expectRefused(() => call(idempotency, key, options), type, message);
  }
});

// A scope of absent parts would be shared by events that have nothing to do with each other.
test.each([
  ["", RangeError, /scope/],
  [["a", ""], RangeError, /scope/],
  [[], TypeError, /scope/],
  [{ 0: "a", length: 1 }, TypeError, /scope/],
  [7, TypeError, /scope.*number/],
  [null, TypeError, /scope.*null/],
  [["a", undefined], TypeError, /scope.*missing/],
])("a scope %j is refused", async (scope, type, message) => {
  const given = { scope: wrong(scope) };
  for (const call of [
    run(given),
    () => inspectKey(idempotency, "k", given),
    () => forgetKey(idempotency, "k", given),
    () => answer(given),
  ]) {
    await expectRefused(call, type, message);
  }
});

test.each<[options: object, message: RegExp]>([
  [{ retension: 1 }, /"retension"; did you mean retention\?/],
  [{ maxAttempt: 1 }, /"maxAttempt"; did you mean maxAttempts\?/],
  [{ waitUntill: 1 }, /did you mean waitUntil\?/],
  [{ laese: 1 }, /did you mean lease\?/],
  [{ ttl: 1 }, /has no option "ttl"; there are /],
])("the misspelt option of %j is refused by its name", async (options, message) => {
  expect(() => new Idempotency(redlock, options)).toThrow(message);
  for (const call of [run(options), () => answer(options)]) await expectRefused(call, TypeError, message);
  await expectRefused(() => inspectKey(idempotency, "k", options), TypeError, /inspectKey has no option/);
});

describe("the constructor", () => {
  test.each<[IdempotencyOptions, typeof TypeError]>([
    [{ lease: 5 }, RangeError],
    [{ lease: wrong("30s") }, TypeError],
    [{ retention: 10 }, RangeError],
    [{ onEvent: wrong("log") }, TypeError],
    [{ maxAttempts: 0 }, RangeError],
  ])("refuses %j at once", (options, type) => {
    expect(() => new Idempotency(redlock, options)).toThrow(type);
  });

  test("takes a client with its own settings of locks", () => {
    const { redlock: other } = virtualWorld().client({ fenceRetention: 15_000 });
    expect(() => new Idempotency(other)).not.toThrow();
  });

  test("leaves defaults in place where an option is undefined", async () => {
    const world = virtualWorld();
    const { idempotency: given } = runner(world, { lease: 60_000, retention: undefined });
    await given.run("key", { lease: undefined }, () => {
      expect(ttls(world)).toEqual([60_000, 60_000, 60_000]);
    });
  });
});
