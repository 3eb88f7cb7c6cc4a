import { inspect as inspectValue } from "node:util";
import { expect, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { handoff, resume } from "../../src/handoff/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { forgetKey, Idempotency, inspectKey, singleFlight } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { forceRelease as freeLock, inspect } from "../../src/inspect/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  FairLock,
  forceRelease,
  Mailbox,
  once,
  ReadWriteLock,
  ReentrantLock,
  refreshOnce,
  Semaphore,
  singleton,
} from "../../src/sync/index.ts";
import { virtualWorld } from "../support/virtual-client.ts";
import { runner, ttls } from "../support/virtual-runs.ts";
import { everyCall, everyTry, parts, unreachable } from "./sync/every-call.ts";

// Wrong arguments of everything that sends requests. arguments.txt has the error of each. Nothing is sent, and what returns
// promises does not throw.

const { redlock, links } = virtualWorld().client({ wait: 0 });
const idempotency = new Idempotency(redlock);
const lock = await redlock.acquire("held");
const json = await handoff(await redlock.acquire("handed over"));
// What is taken ends soon.
for (const link of links) link.fate = () => "refused";
const { acquire, tryAcquire, using } = redlock;
const { run } = idempotency;
const latch = new CountDownLatch(redlock, "l", { count: 1 });
const mailbox = new Mailbox<unknown>(redlock, "m");
const message = { id: "a", value: 1 };
/** What the compiler would refuse. */
const wrong = (value: unknown): never => value as never;

type Call = () => unknown;
/** What is wrong, and the calls of those that are given it, by their names. */
type Mistakes = Record<string, Record<string, Call>>;
type Taker = (options: unknown) => unknown;

const mapped = <From, To>(record: Record<string, From>, to: (from: From, name: string) => To) =>
  Object.fromEntries(Object.entries(record).map(([name, from]) => [name, to(from, name)]));
/** Each mistake, made with each taker. */
const each = <Of>(takers: Record<string, Of>, makes: Record<string, (taker: Of) => unknown>): Mistakes =>
  mapped(makes, (make) => mapped(takers, (taker) => () => make(taker)));
/** Each of these values, given to each taker. */
function eachValue(takers: Record<string, Taker>, values: readonly unknown[]): Mistakes {
  const title = (value: unknown) => inspectValue(value, { breakLength: Infinity, maxArrayLength: 2 });
  return each(
    takers,
    Object.fromEntries(values.map((value) => [title(value).slice(0, 60), (take: Taker) => take(value)])),
  );
}
const single = (calls: Record<string, Call>): Mistakes => mapped(calls, (call, name) => ({ [name]: call }));

const callsOfLocks: Record<string, Taker> = {
  acquire: (options) => redlock.acquire("a", wrong(options)),
  tryAcquire: (options) => redlock.tryAcquire("a", wrong(options)),
  using: (options) => redlock.using("a", wrong(options), unreachable),
  inspect: (options) => inspect(redlock, "a", wrong(options)),
  forceRelease: (options) => freeLock(redlock, "a", wrong(options)),
};
const takersOfLocks: Record<string, Taker> = {
  ...callsOfLocks,
  "new Redlock": (options) => new Redlock({ endpoints: [memoryEndpoint()], ...(options as object) }),
};
const wrongForLocks: readonly object[] = [
  ...[9, 2 ** 31, 10.5, "10s"].map((ttl) => ({ ttl })),
  ...[-1, Number.NaN].map((wait) => ({ wait })),
  ...[0.5, 2 ** 31].map((timeout) => ({ timeout })),
  { driftFactor: 0.51 },
  // As a bound, null would count as 0, and rounds would follow each other without a pause.
  ...[{ min: 0 }, { min: 50, max: 49 }, { mxa: 50 }, null].map((backoff) => ({ backoff })),
  { fencing: "yes" },
  ...["", "a{b}"].map((prefix) => ({ prefix })),
  { waitUntil: {} },
  { autoExtend: "no" },
  { maxHold: -5 },
  { wakeUp: "pubSub" },
  { onEvent: "log" },
  ...["", "n".repeat(256), "\ud83d"].map((note) => ({ note })),
  { signal: {} },
  // If 25 000 were accepted, it would look like an outage: no request is granted in time.
  ...[Number.NaN, 25_000].map((deadline) => ({ deadline })),
  { tll: 5_000 },
  { colour: 3 },
  { token: "secret" },
];
const resourceTakers: Record<string, Taker> = {
  acquire: (name) => redlock.acquire(wrong(name)),
  tryAcquire: (name) => redlock.tryAcquire(wrong(name)),
  using: (name) => redlock.using(wrong(name), unreachable),
  inspect: (name) => inspect(redlock, wrong(name)),
  forceRelease: (name) => freeLock(redlock, wrong(name)),
};
const wrongInMessages: readonly object[] = [
  { resources: [] },
  { value: new Array(33).fill("t") },
  { value: `t${"0".repeat(31)}` },
  { prefix: "a{b}" },
  { ttl: 9 },
  { fence: 0 },
  { endpoints: ["e1", "e2", "e4"] },
];

const answer: Taker = (options) => {
  const init = { method: "POST", headers: { "idempotency-key": "k" } };
  return withIdempotency(new Request("https://a.example/", init), unreachable, {
    redlock,
    ...(options as object),
  });
};
const takersOfKeys: Record<string, Taker> = {
  run: (options) => idempotency.run("k", wrong(options), unreachable),
  singleFlight: (options) => singleFlight(redlock, "k", wrong(options), unreachable),
  inspectKey: (options) => inspectKey(idempotency, "k", wrong(options)),
  forgetKey: (options) => forgetKey(idempotency, "k", wrong(options)),
};
const takersOfRuns: Record<string, Taker> = {
  "new Idempotency": (options) => new Idempotency(redlock, wrong(options)),
  withIdempotency: answer,
  ...takersOfKeys,
  singleFlight: (options) => takersOfKeys.singleFlight!({ ttl: 0, ...(options as object) }),
};
const wrongForRuns: readonly object[] = [
  { lease: 9 },
  { lease: 30_000, retention: 29_999 },
  { wait: -1 },
  { timeout: 0 },
  { waitUntil: 1 },
  { onEvent: 1 },
  { maxAttempts: 0 },
  { maxResult: 999 },
  { deadline: Number.NaN },
  { signal: {} },
  { fingerprint: {} },
  { codec: { encode: unreachable } },
  { codec: { decode: unreachable } },
  { lock: "" },
  { note: "", lock: "a" },
  { note: "n" },
  { kind: "lock" },
  { ttl: -1 },
  { retension: 1 },
  { staleFor: 5 },
  // A scope of absent parts would be shared by events that have nothing to do with each other.
  ...["", ["a", ""], ["a", undefined]].map((scope) => ({ scope })),
];

/** What makes a synchronizer, or calls it: of a client, of a name, with these options and those that it needs. */
interface Maker {
  readonly make: (options: unknown, name?: unknown, client?: unknown) => unknown;
  readonly needed: object;
}
type Kind = new (client: never, name: never, options: never) => unknown;
type Run = (client: never, name: never, options: never, routine: never) => unknown;
const made = (Kind: Kind, needed: object = {}): Maker => ({
  make: (options, name = "n", client = redlock) => new Kind(wrong(client), wrong(name), wrong(options)),
  needed,
});
const ran = (call: Run, needed: object): Maker => ({
  make: (options, name = "n", client = redlock) =>
    call(wrong(client), wrong(name), wrong(options), wrong(unreachable)),
  needed,
});
const makers: Record<string, Maker> = {
  "new Semaphore": made(Semaphore, { limit: 1 }),
  "new ReentrantLock": made(ReentrantLock),
  "new ReadWriteLock": made(ReadWriteLock),
  "new FairLock": made(FairLock),
  "new CountDownLatch": made(CountDownLatch, { count: 1 }),
  "new CyclicBarrier": made(CyclicBarrier, { parties: 1 }),
  "new Mailbox": made(Mailbox),
  once: ran(once, { every: 60_000 }),
  debounce: ran(debounce, { window: 5 }),
  refreshOnce: ran(refreshOnce, parts),
  singleton: ran(singleton, { mode: "skip" }),
};
const ofMakers = mapped(
  makers,
  ({ make, needed }): Taker =>
    (options) =>
      make({ ...needed, ...(options as object) }),
);
const missing = Object.entries(makers).flatMap(([name, { needed }]) =>
  Object.keys(needed).map((option) => [name, { [option]: undefined }] as const),
);
const callsOfSync = mapped(
  { ...everyCall, ...everyTry },
  (call): Taker =>
    (options) =>
      call(redlock, wrong(options)),
);
/** The others merge a number with what they need. */
const methodsOfSync = Object.fromEntries(Object.entries(callsOfSync).filter(([name]) => name.includes(".")));
const outOfBounds: readonly [maker: string, options: object][] = [
  ["new Semaphore", { limit: 0 }],
  ["new CountDownLatch", { count: 0 }],
  ["new CyclicBarrier", { parties: 1_001 }],
  ["new Mailbox", { maxSize: 0 }],
  ["new Mailbox", { maxBytes: 0 }],
  ["new Mailbox", { maxAttempts: 0 }],
  ["new Mailbox", { onFull: "drop" }],
  ["new Mailbox", { onFailed: 7 }],
  ["new Mailbox", { ttl: 10_000, retention: 5_000 }],
  ["new ReentrantLock", { owner: "" }],
  ["once", { every: 19 }],
  ["once", { every: 1_000, ttl: 1_001 }],
  ["debounce", { window: 0 }],
  ["debounce", { window: 5, ttl: 2 ** 30 }],
  ["singleton", { mode: "queue" }],
];

const mistakes: Record<string, Mistakes> = {
  "options of locks": {
    ...eachValue(takersOfLocks, wrongForLocks),
    ...eachValue(callsOfLocks, [5_000, null]),
    ...eachValue({ "new Redlock": takersOfLocks["new Redlock"]! }, [{ runtime: "edge" }, { runtime: {} }]),
  },
  resources: eachValue(resourceTakers, [
    ...["", "x".repeat(1_025), [], Array.from({ length: 101 }, (_, index) => `r${index}`)],
    ...[undefined, ["a", ""]],
  ]),
  "locks, and methods that were taken off": {
    ...eachValue({ extend: (ttl) => lock.extend(wrong(ttl)) }, [9, 10.5, "1s"]),
    ...eachValue({ using: (routine) => redlock.using("a", wrong(routine)) }, [{}]),
    ...single({
      "the routine as the resource": () => redlock.using(wrong(unreachable), wrong(undefined)),
      acquire: () => acquire("a"),
      tryAcquire: () => tryAcquire("a"),
      using: () => using("a", unreachable),
      run: () => run("k", unreachable),
    }),
  },
  "no client": eachValue(
    {
      inspect: (none) => inspect(wrong(none), "a"),
      forceRelease: (none) => freeLock(wrong(none), "a"),
      "new Idempotency": (none) => new Idempotency(wrong(none)),
      singleFlight: (none) => singleFlight(wrong(none), "k", { ttl: 0 }, unreachable),
      inspectKey: (none) => inspectKey(wrong(none), "k"),
    },
    [undefined, "a", { lease: 1_000 }, new FairLock(redlock, "f")],
  ),
  "what was handed over": {
    ...eachValue({ resume: (given) => resume(redlock, wrong(given)) }, [
      "a text",
      null,
      undefined,
      { nonce: "passw0rd" },
    ]),
    ...eachValue(
      { resume: (change) => resume(redlock, { ...json, ...(change as object) }) },
      wrongInMessages,
    ),
  },
  "options of resume": eachValue({ resume: (options) => resume(redlock, json, wrong(options)) }, [
    { timeout: -1 },
    { note: "x" },
  ]),
  "options of runs": {
    ...eachValue(takersOfRuns, wrongForRuns),
    ...eachValue(takersOfKeys, [5_000]),
    ...single({
      "a flight without its ttl": () => takersOfKeys.singleFlight!({}),
      "a handler of no request": () => takersOfKeys.run!({ handler: "h" }),
      "an absent scope": () => takersOfKeys.run!({ scope: undefined }),
    }),
  },
  keys: eachValue(
    {
      run: (key) => idempotency.run(wrong(key), unreachable),
      singleFlight: (key) => singleFlight(redlock, wrong(key), { ttl: 0 }, unreachable),
      inspectKey: (key) => inspectKey(idempotency, wrong(key)),
      forgetKey: (key) => forgetKey(idempotency, wrong(key)),
    },
    ["", 7, undefined, unreachable],
  ),
  "runs and flights": single({
    "no handler": () => idempotency.run("k", wrong(undefined)),
    "the handler before the options": () => run.call(idempotency, "k", wrong(unreachable), wrong({})),
    "no client of a flight": () =>
      singleFlight(wrong("k"), wrong({ ttl: 0 }), wrong(unreachable), unreachable),
    "no computation": () => singleFlight(redlock, "k", { ttl: 0 }, wrong(7)),
  }),
  "what makes synchronizers": {
    ...each(makers, {
      "no name": ({ make, needed }) => make(needed, ""),
      // If an argument is left out, those after it are in wrong places.
      "a name as the client": ({ make, needed }) => make(unreachable, needed, "n"),
      "options as the name": ({ make, needed }) => make(unreachable, needed),
      "a function as the options": ({ make }) => make(unreachable),
      "a number as options": ({ make }) => make(5),
    }),
    ...eachValue(ofMakers, [
      ...[{ tll: 5 }, { fencing: 7 }, { autoExtend: 7 }, { maxHold: -5 }, { driftFactor: 1 }],
      ...[{ wakeUp: 7 }, { signal: {} }, { deadline: "5" }, { note: "" }],
    ]),
    ...single(
      Object.fromEntries(
        [...missing, ...outOfBounds].map(([name, options]) => [
          `${name} ${inspectValue(options)}`,
          () => ofMakers[name]!(options),
        ]),
      ),
    ),
  },
  "calls of synchronizers": {
    ...eachValue(callsOfSync, [{ ttl: 9 }, { signal: {} }, { wiat: 5 }, { note: "" }]),
    ...eachValue(methodsOfSync, [5_000]),
  },
  "arguments of synchronizers": single({
    "no id at a latch": () => latch.arrive(""),
    "no id of a message": () => mailbox.post(wrong({ value: 1 }), unreachable),
    "no message": () => mailbox.post(wrong("a"), unreachable),
    "no value": () => mailbox.post(wrong({ id: "a" }), unreachable),
    "no handler of a post": () => mailbox.post(message, wrong(7)),
    "no handler of drain": () => mailbox.drain(wrong(7)),
    "no routine of once": () => once(redlock, "n", { every: 20 }, wrong(7)),
    "no job": () => singleton(redlock, "n", { mode: "skip" }, wrong(7)),
    "another kind to free": () => forceRelease(redlock, wrong("Lock"), "n"),
    "no kind to free": () => forceRelease(redlock, wrong("n"), wrong(undefined)),
    "timeout 0": () => forceRelease(redlock, "once", "n", { timeout: 0 }),
    "a ttl": () => forceRelease(redlock, "once", "n", wrong({ ttl: 5 })),
  }),
};

/** The error of a call. What is wrong must be a TypeError or a RangeError, before anything is sent. */
async function errorOf(name: string, call: Call): Promise<string> {
  const before = links.flatMap(({ sent }) => sent).length;
  let error: unknown;
  try {
    const returned = call();
    error = await Promise.resolve(returned).then(() => "taken", String);
  } catch (thrown) {
    expect.soft(name, `${thrown}: a promise, not an exception`).toMatch(/^new /);
    error = thrown;
  }
  expect.soft(String(error), name).toMatch(/^(TypeError|RangeError): /);
  expect.soft(links.flatMap(({ sent }) => sent).length - before, name).toBe(0);
  return String(error);
}

test("wrong arguments are refused with the errors in arguments.txt, before anything is sent", async () => {
  const lines: string[] = [];
  for (const [section, cases] of Object.entries(mistakes)) {
    lines.push(`# ${section}`, "");
    for (const [what, calls] of Object.entries(cases)) {
      const takers: Record<string, string[]> = {};
      for (const [name, call] of Object.entries(calls)) {
        const error = await errorOf(name, call);
        takers[error] = [...(takers[error] ?? []), name];
      }
      const [only, ...others] = Object.keys(takers);
      lines.push(what);
      if (others.length === 0) lines.push(`    ${only}`);
      else lines.push(...Object.entries(takers).map(([error, by]) => `    ${by.join(", ")}: ${error}`));
    }
    lines.push("");
  }
  const text = lines.join("\n");
  expect(text).not.toContain(json.value);
  expect(text.match(/passw0rd/g)).toHaveLength(1);
  await expect(text).toMatchFileSnapshot("arguments.txt");
  expect(lock.remaining()).toBeGreaterThan(0);
});

test("values at the bounds are taken", () => {
  const least = { ttl: 10, wait: 0, timeout: 1, driftFactor: 0, backoff: { max: 1 }, maxHold: 0 };
  const most = { wait: Infinity, timeout: 9_999.5, driftFactor: 0.5, backoff: {}, maxHold: Infinity };
  for (const options of [least, most])
    expect(new Redlock({ endpoints: [memoryEndpoint()], ...options })).toBeDefined();
});

test("an option that is undefined is none, and leaves the default in place", async () => {
  const none = { fencing: undefined, token: undefined, autoExtend: undefined, runtime: undefined };
  expect(new Semaphore(redlock, "u", { limit: 1, ...none })).toBeInstanceOf(Semaphore);
  expect(new CountDownLatch(redlock, "u", { count: 1, ...none })).toBeInstanceOf(CountDownLatch);
  expect(new Redlock({ endpoints: [memoryEndpoint()], ...none })).toBeInstanceOf(Redlock);
  const world = virtualWorld();
  const { idempotency: given } = runner(world, { lease: 60_000, retention: undefined });
  await given.run("key", { lease: undefined }, () => {
    expect(ttls(world)).toEqual([60_000, 60_000, 60_000]);
  });
});
