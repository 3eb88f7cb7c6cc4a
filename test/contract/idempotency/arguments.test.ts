import { expect, test } from "vitest";
import { withIdempotency } from "../../../src/http/index.ts";
import { forgetKey, Idempotency, inspectKey, singleFlight } from "../../../src/idempotency/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { runner, ttls } from "../../support/virtual-runs.ts";

// Wrong arguments: the error names what is wrong, and nothing was sent.

type Errors = typeof RangeError | typeof TypeError;
type Call = (options: unknown) => unknown;

const { redlock, links } = virtualWorld().client();
const idempotency = new Idempotency(redlock);
const { run: takenOff } = idempotency;
/** For calls that the compiler would refuse. */
const untyped = Object(idempotency) as Record<string, (...given: unknown[]) => unknown>;
const handler = () => expect.unreachable("nothing may run");
/** What the compiler would refuse. */
const wrong = (value: unknown): never => value as never;

const construct: Call = (options) => new Idempotency(redlock, wrong(options));
const run: Call = (options) => idempotency.run("k", wrong(options), handler);
const fly: Call = (options) => singleFlight(redlock, "k", wrong(options), handler);
const inspect: Call = (options) => inspectKey(idempotency, "k", wrong(options));
const forget: Call = (options) => forgetKey(idempotency, "k", wrong(options));
const answer: Call = (options) => {
  const init = { method: "POST", headers: { "idempotency-key": "k" } };
  return withIdempotency(new Request("https://a.example/", init), handler, {
    redlock,
    ...(options as object),
  });
};

async function expectRefused(call: () => unknown, type: Errors, said: string): Promise<void> {
  const error = await rejection((async () => call())());
  expect(error).toBeInstanceOf(type);
  expect((error as Error).message).toContain(said);
  expect(links.flatMap(({ sent }) => sent)).toEqual([]);
}

const everywhere = [construct, run, answer];
const keyed = [inspect, forget];

/** Each is refused by these functions. */
const refused: [options: unknown, type: Errors, said: string, by: readonly Call[]][] = [
  [{ lease: 9 }, RangeError, "lease (ms) must be between 10 and 2147483647, got 9", everywhere],
  [{ lease: 30_000, retention: 29_999 }, RangeError, "retention (ms) must be between 30000", everywhere],
  [{ wait: -1 }, RangeError, "wait (ms) must be between 0 and Infinity, got -1", everywhere],
  [{ timeout: 0 }, RangeError, "timeout (ms) must be between 1", [...everywhere, ...keyed]],
  [{ waitUntil: 1 }, TypeError, "waitUntil must be a function, or the platform's context", everywhere],
  [{ onEvent: 1 }, TypeError, "onEvent must be a function, got number", everywhere],
  [{ maxAttempts: 0 }, RangeError, "maxAttempts must be between 1 and", everywhere],
  [{ maxResult: 999 }, RangeError, "maxResult must be between 1000 and 4000000, got 999", everywhere],
  [{ deadline: Number.NaN }, RangeError, "deadline (ms since 1970) must be between 0", [run, answer]],
  [{ signal: {} }, TypeError, "signal must be an AbortSignal", [run]],
  [{ fingerprint: {} }, TypeError, "fingerprint must be", [run]],
  [{ codec: { encode: handler } }, TypeError, "codec.decode is missing: it must be a function", [run]],
  [{ codec: { decode: handler } }, TypeError, "codec.encode is missing: it must be a function", [run]],
  [{ lock: "" }, RangeError, "lock must have 1 … 1024 characters, has 0", [run]],
  [{ note: "", lock: "a" }, RangeError, "note must have 1 … 255 characters, has 0", [run]],
  [{ note: "n" }, TypeError, "note needs lock: it is stored with the lock", [run]],
  [{ kind: "lock" }, RangeError, 'kind must be "run", "http" or "flight", got "lock"', [run, ...keyed]],
  [{ handler: "h" }, TypeError, 'handler needs kind: "http"', [run, ...keyed]],
  [{}, TypeError, "ttl (ms) is missing: it must be a number", [fly]],
  [{ ttl: -1 }, RangeError, "ttl (ms) must be between 0 and 2592000000, got -1", [fly]],
  // Misspelt, or of something else.
  [{ retension: 1 }, TypeError, 'has no option "retension"; did you mean retention?', everywhere],
  [
    { ttl: 1 },
    TypeError,
    'has no option "ttl"; did you mean retention, how long the result is kept',
    everywhere,
  ],
  [{ ttl: 1, staleFor: 5 }, TypeError, 'singleFlight has no option "staleFor"; there are ttl, wait', [fly]],
  [{ lease: 1_000 }, TypeError, 'inspectKey has no option "lease"; there are scope, ', [inspect]],
  [{ lease: 1_000 }, TypeError, 'forgetKey has no option "lease"; there are scope, ', [forget]],
  [5_000, TypeError, "needs an object of options", [construct, run, fly, ...keyed]],
];

// A scope of absent parts would be shared by events that have nothing to do with each other.
const scopes: [scope: unknown, type: Errors, said: string][] = [
  ["", RangeError, "scope must have no empty part"],
  [["a", ""], RangeError, "scope must have no empty part"],
  [
    undefined,
    TypeError,
    "is missing: it must be a string, or an array of at least one; leave the option out where all may share their keys",
  ],
  [["a", undefined], TypeError, "a part of scope is missing: it must be a string"],
];

test.each(refused)("the options %o", async (options, type, said, calls) => {
  for (const call of calls) await expectRefused(() => call(options), type, said);
});

test.each(scopes)("the scope %j", async (scope, type, said) => {
  for (const call of [run, answer, ...keyed]) await expectRefused(() => call({ scope }), type, said);
  await expectRefused(() => fly({ ttl: 0, scope }), type, said);
});

test.each<[what: string, call: () => unknown, type: Errors, said: string]>([
  ["no handler", () => idempotency.run("k", wrong(undefined)), TypeError, "handler is missing"],
  [
    "a handler as the key",
    () => untyped.run!(handler),
    TypeError,
    "key must be a string, as in idempotency.run(key, handler), got function",
  ],
  [
    "the handler before the options",
    () => untyped.run!("k", handler, {}),
    TypeError,
    "options must be an object, as in idempotency.run(key, { fingerprint }, handler), got function",
  ],
  [
    "a flight of its key",
    () => singleFlight(wrong("k"), wrong({ ttl: 0 }), wrong(handler), handler),
    TypeError,
    "redlock must be a client: new Redlock({ endpoints }), as in singleFlight(redlock, key, { ttl: 60_000 }, compute)",
  ],
  ["no computation", () => singleFlight(redlock, "k", { ttl: 0 }, wrong(7)), TypeError, "compute must be"],
  [
    "no client",
    () => new Idempotency(wrong(undefined)),
    TypeError,
    "redlock is missing: it must be a client",
  ],
  [
    "options as the client",
    () => new Idempotency(wrong({ lease: 1_000 })),
    TypeError,
    "redlock must be a client",
  ],
  [
    "a flight without a client",
    () => singleFlight(wrong({}), "k", { ttl: 0 }, handler),
    TypeError,
    "redlock must",
  ],
  ["an operator without runs", () => inspectKey(wrong(redlock), "k"), TypeError, "idempotency must be"],
  ["a method that was taken off", () => takenOff("k", handler), TypeError, "call it as idempotency.run"],
])("%s", (_, ...refusal) => expectRefused(...refusal));

test.each<[key: unknown, type: Errors, said: string]>([
  ["", RangeError, "key must have at least 1 character, has 0"],
  [7, TypeError, "key must be a string"],
  [undefined, TypeError, "key is missing: it must be a string"],
])("the key %j", async (key, type, said) => {
  for (const call of [
    () => idempotency.run(wrong(key), handler),
    () => singleFlight(redlock, wrong(key), { ttl: 0 }, handler),
    () => inspectKey(idempotency, wrong(key)),
    () => forgetKey(idempotency, wrong(key)),
  ]) {
    await expectRefused(call, type, said);
  }
});

test("what is taken an option that is undefined, which leaves the default in place", async () => {
  const world = virtualWorld();
  const { idempotency: given } = runner(world, { lease: 60_000, retention: undefined });
  await given.run("key", { lease: undefined }, () => {
    expect(ttls(world)).toEqual([60_000, 60_000, 60_000]);
  });
});
