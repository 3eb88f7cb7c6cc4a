import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { Redlock } from "../../../src/index.ts";
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
} from "../../../src/sync/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { everyCall, everyTry, parts, unreachable } from "./every-call.ts";

// Wrong arguments of every synchronizer: the error names what is wrong, and nothing was sent. What the values of the
// options of locks must be is in test/contract/locks/arguments.test.ts.

type Errors = typeof RangeError | typeof TypeError;
type Case = [what: string, call: () => unknown, type: Errors, said: string];

const { redlock, links } = virtualWorld().client();
/** What the compiler would refuse. */
const wrong = (value: unknown): never => value as never;

/** What makes one, or calls it: of a client, of a name, with these options. */
interface Maker {
  readonly make: (options: unknown, name?: unknown, client?: unknown) => unknown;
  /** Options that it takes. Default: it needs none. */
  readonly needed?: object;
  /** What is meant by a number. Default ttl. */
  readonly usual?: string;
  /** What its errors call it. Default: its name. */
  readonly called?: string;
  /** Options of locks that it has not. Default: fences, and what belongs to a call. */
  readonly without?: Readonly<Record<string, unknown>>;
}

const ofCalls = { signal: AbortSignal.abort(), deadline: 5, note: "n" };
const fences = { fencing: true };
const make =
  (Kind: new (client: never, name: never, options: never) => unknown): Maker["make"] =>
  (options, name = "n", client = redlock) =>
    new Kind(wrong(client), wrong(name), wrong(options));
const run =
  (call: (client: never, name: never, options: never, routine: never) => unknown): Maker["make"] =>
  (options, name = "n", client = redlock) =>
    call(wrong(client), wrong(name), wrong(options), wrong(unreachable));

const makers: Record<string, Maker> = {
  Semaphore: {
    make: make(Semaphore),
    needed: { limit: 1 },
    usual: "limit",
    called: "a semaphore",
  },
  ReentrantLock: { make: make(ReentrantLock), called: "a reentrant lock" },
  ReadWriteLock: { make: make(ReadWriteLock), called: "a read-write lock" },
  FairLock: { make: make(FairLock), called: "a fair lock" },
  CountDownLatch: {
    make: make(CountDownLatch),
    needed: { count: 1 },
    usual: "count",
    called: "a latch",
    without: { ...fences, ...ofCalls, autoExtend: true, driftFactor: 0.1 },
  },
  CyclicBarrier: {
    make: make(CyclicBarrier),
    needed: { parties: 1 },
    usual: "parties",
    called: "a barrier",
    without: { ...fences, ...ofCalls, maxHold: 5 },
  },
  Mailbox: { make: make(Mailbox), called: "a mailbox", without: { ...fences, ...ofCalls, autoExtend: true } },
  once: {
    make: run(once),
    needed: { every: 60_000 },
    usual: "every",
    without: { wakeUp: pubSub, maxHold: 5, note: "n" },
  },
  debounce: {
    make: run(debounce),
    needed: { window: 5 },
    usual: "window",
    without: { wakeUp: pubSub, deadline: 5, fencing: true, note: "n" },
  },
  refreshOnce: {
    make: run(refreshOnce),
    needed: parts,
    usual: "wait",
    without: { autoExtend: false, fencing: true },
  },
  singleton: {
    make: run(singleton),
    needed: { mode: "skip" },
    without: { wakeUp: pubSub, autoExtend: false, fencing: true },
  },
};

describe.each(Object.entries(makers))(
  "%s",
  (kind, { make, needed, usual = "ttl", called = kind, without }) => {
    // If an argument is left out, those after it are in wrong places.
    const client = "must be a client: new Redlock({ endpoints })";
    const asIn = `as in ${/^[A-Z]/.test(kind) ? "new " : ""}${kind}(redlock, `;
    const given = (options: object) => () => make({ ...needed, ...options });
    const cases: Case[] = [
      ["no name", () => make(needed ?? {}, ""), RangeError, "must have 1 … 1024 characters, has 0"],
      ["several names", () => make(needed ?? {}, ["a", "b"]), TypeError, "must be a string"],
      ["no client", () => make(needed ?? {}, "n", {}), TypeError, "redlock must be a client"],
      [
        "a name as the client",
        () => make(unreachable, needed ?? {}, "n"),
        TypeError,
        `redlock ${client}, ${asIn}`,
      ],
      ["options as the name", () => make(unreachable, needed ?? {}), TypeError, ` must be a string, ${asIn}`],
      ["a function as the options", () => make(unreachable), TypeError, `options must be an object, ${asIn}`],
      ["a number as options", () => make(5), TypeError, `did you mean { ${usual}: 5 }?`],
      ["tll", given({ tll: 5 }), TypeError, `${called} has no option "tll"; did you mean ttl?`],
      ...Object.entries(without ?? { ...fences, ...ofCalls }).map(
        ([name, value]): Case => [
          name,
          given({ [name]: value }),
          TypeError,
          `${called} has no option "${name}"; `,
        ],
      ),
      ...Object.keys(needed ?? {}).map(
        (name): Case => [
          `no ${name}`,
          given({ [name]: undefined }),
          name === "mode" ? RangeError : TypeError,
          `${name} `,
        ],
      ),
    ];

    test.each(cases)("%s", async (_, ...refusal) => expectRefused(...refusal));
  },
);

async function expectRefused(call: () => unknown, type: Errors, said: string): Promise<void> {
  const error = await rejection((async () => call())());
  expect(error).toBeInstanceOf(type);
  expect((error as Error).message).toContain(said);
  expect(links.flatMap(({ sent }) => sent)).toEqual([]);
}

const latch = new CountDownLatch(redlock, "l", { count: 1 });
const mailbox = new Mailbox<unknown>(redlock, "m");
const message = { id: "a", value: 1 };

/** Whether it stores what its holder says of itself. */
const hasNote = (name: string) => /^(Semaphore|FairLock|refreshOnce|singleton)/.test(name);

describe.each(Object.entries({ ...everyCall, ...everyTry }))("a call of %s", (name, call) => {
  const isOnce = /^[a-z]/.test(name);
  const usual = /Latch|Barrier|Mailbox/.test(name) ? "wait" : "ttl";
  const aNumber: [unknown, Errors, string] = [5_000, TypeError, `{ ${usual}: 5000 }`];
  test.each<[options: unknown, type: Errors, said: string]>([
    [{ ttl: 9 }, RangeError, "ttl (ms) must be between 10 and "],
    [{ signal: {} }, TypeError, "signal must be an AbortSignal"],
    [{ wiat: 5 }, TypeError, 'has no option "wiat"; did you mean wait?'],
    ...(isOnce ? [] : [aNumber]),
    hasNote(name)
      ? [{ note: "" }, RangeError, "note must have 1 … 255 characters, has 0"]
      : [
          { note: "n" },
          TypeError,
          `has no option "note"; ${name === "debounce" ? "there are" : "it belongs to calls of locks, semaphores"} `,
        ],
  ])("with %o", (options, type, said) => expectRefused(() => call(redlock, wrong(options)), type, said));
});

const numbers: [name: string, make: (value: unknown) => unknown, least: number, greatest: number][] = [
  ["limit", (limit) => make(Semaphore)({ limit }), 1, 1_000],
  ["count", (count) => make(CountDownLatch)({ count }), 1, 1_000],
  ["parties", (parties) => make(CyclicBarrier)({ parties }), 1, 1_000],
  ["every", (every) => run(once)({ every, signal: AbortSignal.abort("taken") }), 20, 2_147_483_647],
  ["maxSize", (maxSize) => make(Mailbox)({ maxSize }), 1, 10_000],
  ["maxBytes", (maxBytes) => make(Mailbox)({ maxBytes }), 1, 1_000_000],
  ["maxAttempts", (maxAttempts) => make(Mailbox)({ maxAttempts }), 1, Number.MAX_SAFE_INTEGER],
  ["window", (window) => run(debounce)({ window, signal: AbortSignal.abort("taken") }), 1, 2 ** 30 - 1],
];

test.each(numbers)("%s is an integer within its bounds", async (name, take, least, greatest) => {
  for (const value of [least, greatest]) {
    const taken = await (async () => take(value))().catch((reason: unknown) => reason);
    expect(taken).not.toBeInstanceOf(Error);
  }
  for (const value of [least - 1, greatest + 1]) {
    await expectRefused(
      () => take(value),
      RangeError,
      ` must be between ${least} and ${greatest}, got ${value}`,
    );
  }
  await expectRefused(() => take(least + 0.5), RangeError, ` must be an integer, got ${least + 0.5}`);
  const unit = least === 1 && name !== "window" ? "" : " (ms)";
  await expectRefused(() => take("2"), TypeError, `${name}${unit} must be a number, got "2"`);
});

const owner = (value: unknown) => () => make(ReentrantLock)({ owner: value });

test.each<Case>([
  ["no owner", owner(""), RangeError, "owner must have 1 … 255 characters, has 0"],
  ["no id at a latch", () => latch.arrive(""), RangeError, "id must have 1 … 255 characters, has 0"],
  [
    "no id of a message",
    () => mailbox.post(wrong({ value: 1 }), unreachable),
    TypeError,
    "message.id is missing: it must be a string in an object, as in mailbox.post({ id: event.id, value: event.text }, handler)",
  ],
  [
    "no message",
    () => mailbox.post(wrong("a"), unreachable),
    TypeError,
    "message must be an object, as in mailbox.post(",
  ],
  ["no handler of a post", () => mailbox.post(message, wrong(7)), TypeError, "handler must be a function"],
  ["no handler of drain", () => mailbox.drain(wrong(7)), TypeError, "handler must be a function"],
  [
    "no value",
    () => mailbox.post(wrong({ id: "a" }), unreachable),
    TypeError,
    "message.value is missing: it must be JSON in an object, as in mailbox.post({ id",
  ],
  ["another onFull", () => make(Mailbox)({ onFull: "drop" }), RangeError, 'onFull must be "refuse" or'],
  ["another onFailed", () => make(Mailbox)({ onFailed: 7 }), TypeError, "onFailed must be a function"],
  [
    "retention under the ttl",
    () => make(Mailbox)({ ttl: 10_000, retention: 5_000 }),
    RangeError,
    "retention (ms) must be between 10000 and",
  ],
  ["ttl over every", () => run(once)({ every: 1_000, ttl: 1_001 }), RangeError, "got 1001"],
  [
    "ttl 2³⁰",
    () => run(debounce)({ window: 5, ttl: 2 ** 30 }),
    RangeError,
    "ttl (ms) must be between 10 and",
  ],
  [
    "another mode",
    () => run(singleton)({ mode: "queue" }),
    RangeError,
    'mode must be "skip", "coalesce" or "cancel"',
  ],
  [
    "no routine of once",
    () => once(redlock, "n", { every: 20 }, wrong(7)),
    TypeError,
    "routine must be a function",
  ],
  ["no job", () => singleton(redlock, "n", { mode: "skip" }, wrong(7)), TypeError, "job must be a function"],
  [
    "another kind to free",
    () => forceRelease(redlock, wrong("Lock"), "n"),
    TypeError,
    "no synchronizer of kind Lock; there are Semaphore, ",
  ],
  [
    "no kind to free",
    () => forceRelease(redlock, wrong("n"), wrong(undefined)),
    TypeError,
    "no synchronizer of kind n",
  ],
  ["timeout 0", () => forceRelease(redlock, "once", "n", { timeout: 0 }), RangeError, "timeout (ms) must be"],
  [
    "a ttl",
    () => forceRelease(redlock, "once", "n", wrong({ ttl: 5 })),
    TypeError,
    'has no option "ttl"; there are',
  ],
])("%s is refused before anything is sent", async (_, ...refusal) => expectRefused(...refusal));

test("an option that is undefined changes nothing, also where it does not belong", () => {
  const none = { fencing: undefined, token: undefined, autoExtend: undefined, runtime: undefined };
  expect(new Semaphore(redlock, "u", { limit: 1, ...none })).toBeInstanceOf(Semaphore);
  expect(new CountDownLatch(redlock, "u", { count: 1, ...none })).toBeInstanceOf(CountDownLatch);
  expect(new Redlock({ endpoints: [memoryEndpoint()], ...none })).toBeInstanceOf(Redlock);
});
