import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { handoff, resume } from "../../../src/handoff/index.ts";
import { httpEndpoint, type Lock, Redlock } from "../../../src/index.ts";
import { forceRelease, inspect } from "../../../src/inspect/index.ts";
import { FairLock } from "../../../src/sync/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { type RawServer, result, startRawServer } from "../../support/raw-server.ts";
import { trusted } from "../../support/trusted.ts";

type Refusal = readonly [value: unknown, type: typeof TypeError | typeof RangeError, said: string];

/** What the compiler would refuse. */
const wrong = (value: unknown): never => value as never;
const longest = 2_147_483_647;

/** Values of each option that are taken, and that are refused. */
const values: Readonly<
  Record<string, { readonly taken: readonly unknown[]; readonly refused: readonly Refusal[] }>
> = {
  ttl: {
    taken: [10, 86_400_000],
    refused: [
      [9, RangeError, "ttl (ms) must be between 10 and 2147483647, got 9"],
      [longest + 1, RangeError, "got 2147483648"],
      [10.5, RangeError, "ttl (ms) must be an integer, got 10.5"],
      ["10s", TypeError, 'ttl (ms) must be a number, got "10s"'],
    ],
  },
  wait: {
    taken: [0, Infinity],
    refused: [
      [-1, RangeError, "wait (ms) must be between 0 and Infinity, got -1"],
      [Number.NaN, RangeError, "got NaN"],
    ],
  },
  timeout: {
    taken: [1, 1.5, longest],
    refused: [
      [0.5, RangeError, "timeout (ms) must be between 1 and 2147483647, got 0.5"],
      [longest + 1, RangeError, "got 2147483648"],
    ],
  },
  driftFactor: {
    taken: [0, 0.5],
    refused: [[0.51, RangeError, "driftFactor must be between 0 and 0.5, got 0.51"]],
  },
  backoff: {
    taken: [{ min: 7, max: 7 }, { min: 1 }, { max: 1 }, {}, () => 5],
    refused: [
      [{ min: 0 }, RangeError, "backoff.min (ms) must be between 1 and Infinity, got 0"],
      [{ min: 50, max: 49 }, RangeError, "backoff.max (ms) must be between 50 and Infinity, got 49"],
      [{ mxa: 50 }, TypeError, 'backoff has no option "mxa"; did you mean max?'],
      // As a bound it would count as 0, and rounds would follow each other without a pause.
      [null, TypeError, "backoff must be an object, got null"],
    ],
  },
  fencing: { taken: [true, false], refused: [["yes", TypeError, 'fencing must be a boolean, got "yes"']] },
  prefix: {
    taken: ["a", "my app:locks"],
    refused: [
      ["", RangeError, "prefix must have at least 1 character, has 0"],
      ["a{b}", RangeError, 'prefix must have no braces, got "a{b}"'],
    ],
  },
  waitUntil: {
    taken: [() => undefined, { waitUntil: () => undefined }],
    refused: [[{}, TypeError, "waitUntil must be a function, or the platform's context, got Object"]],
  },
  autoExtend: {
    taken: [true, false],
    refused: [["no", TypeError, 'autoExtend must be a boolean, got "no"']],
  },
  maxHold: {
    taken: [0, Infinity],
    refused: [[-5, RangeError, "maxHold (ms) must be between 0 and Infinity, got -5"]],
  },
  wakeUp: {
    taken: [pubSub],
    refused: [
      ["pubSub", TypeError, 'wakeUp must be the pubSub that redlock-edge/wake-up exports, got "pubSub"'],
    ],
  },
  onEvent: {
    taken: [() => undefined],
    refused: [["log", TypeError, 'onEvent must be a function, got "log"']],
  },
};

/** The same of options of one acquire. */
const valuesOfCalls: typeof values = {
  note: {
    taken: ["n", "🐘\n".repeat(85)],
    refused: [
      ["", RangeError, "note must have 1 … 255 characters, has 0"],
      ["n".repeat(256), RangeError, "note must have 1 … 255 characters, has 256"],
      ["\ud83d", RangeError, "note has half of a surrogate pair in it"],
    ],
  },
  signal: {
    taken: [],
    refused: [[{}, TypeError, "signal must be an AbortSignal: controller.signal, got Object"]],
  },
  deadline: {
    taken: [Infinity],
    refused: [
      [Number.NaN, RangeError, "deadline (ms since 1970) must be between 0 and Infinity, got NaN"],
      // If it were accepted, it would look like an outage: no request is granted in time.
      [25_000, RangeError, "it is a time: Date.now() + 5_000"],
    ],
  },
};

const rows = (table: typeof values) =>
  Object.entries(table).flatMap(([name, { refused }]) =>
    refused.map(([value, ...why]) => [{ [name]: value }, ...why] as [object, ...typeof why]),
  );

/** Options that there are not, or not there. */
const unknown: [options: unknown, type: typeof TypeError, said: string][] = [
  [5_000, TypeError, "options must be an object; did you mean { ttl: 5000 }?"],
  [null, TypeError, "a lock needs an object of options"],
  [{ tll: 5_000 }, TypeError, 'a lock has no option "tll"; did you mean ttl?'],
  [{ colour: 3 }, TypeError, 'a lock has no option "colour"; there are ttl, wait, '],
  [{ token: "secret" }, TypeError, 'a lock has no option "token"; it belongs to ReentrantLock, as owner'],
  [{ runtime: {} }, TypeError, 'a lock has no option "runtime"; it belongs to new Redlock()'],
];

describe("wrong arguments", () => {
  let server: RawServer;
  let redlock: Redlock;
  let lock: Lock;
  beforeAll(async () => {
    server = await startRawServer(() => result("OK"));
    redlock = new Redlock({ endpoints: [trusted(httpEndpoint({ url: server.url, token: "token" }))] });
    lock = await redlock.acquire("resource");
  });
  afterAll(() => server.close());

  const client = (options: object) =>
    new Redlock({ endpoints: [{ url: server.url, token: "token" }], ...options });
  const unreachable = () => expect.unreachable("it must not run");

  /** Fails unless `call` returns a promise that rejects before any request is sent. */
  async function expectRefused(call: () => unknown, type: ErrorConstructor, said: string): Promise<void> {
    const before = server.requests.length;
    const returned = call();
    expect(returned, "a promise, not an exception").toBeInstanceOf(Promise);
    const error = await rejection(returned as Promise<unknown>);
    expect(error).toBeInstanceOf(type);
    expect((error as Error).message).toContain(said);
    expect(server.requests.length).toBe(before);
  }

  /** The functions that take the options of a lock, and no others. */
  const functions = (options: unknown) => [
    () => inspect(redlock, "a", wrong(options)),
    () => forceRelease(redlock, "a", wrong(options)),
  ];
  const calls = (options: unknown) => [
    () => redlock.acquire("a", wrong(options)),
    // It ignores `wait`: it runs one round.
    ...(Object(options).wait === undefined ? [() => redlock.tryAcquire("a", wrong(options))] : []),
    () => redlock.using("a", wrong(options), unreachable),
  ];

  test.each([...rows(values), ...unknown])("the options %o", async (options, type, said) => {
    for (const call of [...calls(options), ...functions(options)]) await expectRefused(call, type, said);
    // The client's own defaults are checked when it is made.
    if (typeof options !== "object" || options === null || Array.isArray(options) || "runtime" in options)
      return;
    expect(() => client(options)).toThrow(type);
    expect(() => client(options)).toThrow(said);
  });

  test.each(rows(valuesOfCalls))("the options of a call %o", async (options, type, said) => {
    for (const call of calls(options)) await expectRefused(call, type, said);
    const belongs = `a lock has no option "${Object.keys(options)[0]}"; it belongs to acquire()`;
    for (const call of functions(options)) await expectRefused(call, TypeError, belongs);
    expect(() => client(options)).toThrow(belongs);
  });

  test("values at the bounds are none", () => {
    for (const [name, { taken }] of Object.entries(values)) {
      for (const value of taken) expect(() => client({ [name]: value }), name).not.toThrow();
    }
  });

  test.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    ["", RangeError, "has 0"],
    ["x".repeat(1_025), RangeError, "has 1025"],
    [[], RangeError, "got 0"],
    [Array.from({ length: 101 }, (_, index) => `r${index}`), RangeError, "got 101"],
    [undefined, TypeError, "is missing"],
    [["a", ""], RangeError, "has 0"],
  ])("the resource %o", async (resource, type, said) => {
    const name = resource as string;
    await expectRefused(() => redlock.acquire(name), type, said);
    await expectRefused(() => redlock.tryAcquire(name), type, said);
    await expectRefused(() => redlock.using(name, () => 1), type, said);
    // Each of these has a state of its own: `forceRelease` would free the first only.
    const [only, why] = Array.isArray(resource) ? [TypeError, "resource must be one name"] : [type, said];
    await expectRefused(() => inspect(redlock, name), only, why);
    await expectRefused(() => forceRelease(redlock, name), only, why);
  });

  test("of a lock", async () => {
    await expectRefused(() => lock.extend(9), RangeError, "got 9");
    await expectRefused(() => lock.extend(10.5), RangeError, "got 10.5");
    await expectRefused(() => lock.extend(wrong("1s")), TypeError, 'got "1s"');
    await expectRefused(() => redlock.using("a", wrong({})), TypeError, "routine");
    await expectRefused(() => redlock.using(wrong(unreachable), wrong(undefined)), TypeError, "routine");
    expect(lock.remaining()).toBeGreaterThan(0);
    expect(lock.ttl).toBe(10_000);
  });

  test("of resume, whose message says the rest", async () => {
    const json = await handoff(await redlock.acquire("for a handoff"));
    const refused = (options: object, type: typeof TypeError | typeof RangeError, said: string) =>
      expectRefused(() => resume(redlock, json, wrong(options)), type, said);
    await refused({ timeout: -1 }, RangeError, "timeout (ms) must be between 1");
    await refused({ note: "x" }, TypeError, 'a lock has no option "note"');
  });

  test("of a client that is none, or a method that was taken off it", async () => {
    const { acquire, tryAcquire, using } = redlock;
    for (const call of [() => acquire("a"), () => tryAcquire("a"), () => using("a", unreachable)]) {
      await expectRefused(call, TypeError, "the method was taken off its object: call it as redlock.");
    }
    for (const none of [undefined, "a", new FairLock(redlock, "f")]) {
      for (const ask of [inspect, forceRelease]) {
        await expectRefused(() => ask(wrong(none), "a"), TypeError, "redlock ");
      }
    }
  });
});
