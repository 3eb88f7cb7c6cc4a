import { describe, expect, test } from "vitest";
import { type Command, type Endpoint, QuorumError, Redlock } from "../../../src/index.ts";
import type { Settings } from "../../../src/lock/options.ts";
import type { Call } from "../../../src/quorum/round.ts";
import { systemRuntime } from "../../../src/runtime/runtime.ts";
import { queued } from "../../../src/sync/fair-lock.ts";
import {
  CountDownLatch,
  debounce,
  forceRelease,
  Semaphore,
  type SynchronizerKind,
} from "../../../src/sync/index.ts";
import { Place } from "../../../src/sync/internal/mailbox-place.ts";
import { requestMember } from "../../../src/sync/internal/members.ts";
import { intervalOf } from "../../../src/sync/once.ts";
import { askOf } from "../../support/ask.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

// Endpoints that reply what their script cannot have given: an error of theirs, never a result.

/** Makes a reply from the value that the request would store. */
type Reply = (value: string) => unknown;

/** What sends a script to one endpoint, and resolves with what it makes of the reply. */
interface Ask {
  readonly send: (to: Endpoint) => Promise<unknown>;
  /** Where the value stands in the command. */
  readonly echo: (command: Command) => unknown;
  readonly garbage: readonly Reply[];
}

const clientOf = (endpoint: Endpoint) =>
  new Redlock({ endpoints: [endpoint], runtime: steppingRuntime(), wait: 0, timeout: 100 });

/** What becomes of a request whose reply is this one. */
async function outcomeWith({ send, echo }: Omit<Ask, "garbage">, reply: Reply) {
  const { value, error } = await outcomeOf(
    send({
      name: "e",
      dialect: "redis",
      exactReplies: true,
      send: async (command) => reply(String(echo(command))),
    }),
  );
  const { cause } = (error instanceof QuorumError && error.votes[0]) || {};
  return { value, error: cause ?? error };
}

const stranger = `t${"0".repeat(32)}`;
const at = (index: number) => (command: Command) => command[index];
const unreachable = () => expect.unreachable("it must not run");

const nothing: Reply[] = [() => "OK", () => null, () => 1, () => [], () => [1], () => [stranger, 1, "ff"]];
const value = `t${"1".repeat(32)}a`;
const cell = { keys: ["k"], value, tombstone: "v" };
const interval = intervalOf({ runtime: systemRuntime, prefix: "redlock" }, "n", 1_000);
const ticket = queued(
  { prefix: "redlock", timeout: 100, wait: 1, runtime: systemRuntime, backoff: {} } as Settings,
  "q",
);
const later = (text: string) => `g0${"9".repeat(14)}0${text}`;

const echoing = { echo: () => value };
const semaphore: Omit<Ask, "garbage"> = {
  send: (to) => new Semaphore(clientOf(to), "s", { limit: 2 }).tryAcquire(),
  echo: at(6),
};
const latch: Omit<Ask, "garbage"> = {
  send: (to) => new CountDownLatch(clientOf(to), "l", { count: 3 }).arrive("a"),
  echo: at(4),
};
const acquire = {
  send: (to: Endpoint) => requestMember(askOf(to), ["k", "v"], ["acquire", value, 10, "", 0, 0]),
  ...echoing,
};
const claim = { send: (to: Endpoint) => interval.claim(askOf(to) as Call, cell, 10), ...echoing };
const queue = {
  send: (to: Endpoint) => ticket.claim(askOf(to) as Call, cell, 10),
  ...echoing,
};
const place = (to: Endpoint) =>
  new Place({ endpoints: [to], prefix: "redlock", runtime: systemRuntime } as unknown as Settings, "m", {
    retention: 1_000,
    maxSize: 1,
  });
const message = { id: "a", stamp: 5, call: "c", json: "1" };
const post = {
  send: (to: Endpoint) => place(to).post(askOf(to), value, 10, { stamp: 5, message }),
  ...echoing,
};
const step = {
  send: (to: Endpoint) =>
    place(to).step(askOf(to), value, { number: 1, closes: true, done: [], puts: [], left: [], failed: 0 }),
  ...echoing,
};
const turn = { send: (to: Endpoint) => place(to).keep(askOf(to), value, 0), ...echoing };
const inspectMailbox: Omit<Ask, "garbage"> = {
  send: (to) => place(to).look(askOf(to)),
  echo: (command) => command[4 + Number(command[2])],
};
/** It replies the nonce, which follows the keys. */
const free = (kind: SynchronizerKind): Omit<Ask, "garbage"> => ({
  send: (to) => forceRelease(clientOf(to), kind, "n"),
  echo: (command) => command[4 + Number(command[2])],
});

const ofArrivals: Reply[] = [
  (nonce) => [nonce],
  () => [stranger, "g0", ["ia"], 3],
  (nonce) => [nonce, 0, ["ia"], 3],
  (nonce) => [nonce, "g0", 3],
  (nonce) => [nonce, "g0", "ia", 3],
  (nonce) => [nonce, "g0", ["ia"]],
  (nonce) => [nonce, "x", ["ia"], 3],
  (nonce) => [nonce, "g0 ", ["ia"], 3],
  (nonce) => [nonce, " g0", ["ia"], 3],
  // A generation without a number; half a count.
  (nonce) => [nonce, "g", ["ia"], 3],
  (nonce) => [nonce, "g0", ["ia"], 2.5],
  () => [stranger, "g0", ["ia"], 2],
];
const ofMembers: Reply[] = [
  () => value,
  () => ["t"],
  () => [value, 1],
  () => [null, 5],
  () => [value.slice(0, -1)],
  () => [0, value],
];
const ofIntervals: Reply[] = [() => value, () => [stranger, "0"], () => [0, "5", "r"], () => [1, 5, "r"]];

/** A list of messages that is none. */
const ofMessages: unknown[][] = [
  ["ia", 5, "c", 0],
  ["ia", "x", "c", 0, "v1"],
  ["ia", 5, "c", -1, "v1"],
  [7, 5, "c", 0, "v1"],
  ["ia", 5, "c", 0, null],
];

const asks: Record<string, Ask> = {
  "a semaphore of two permits": {
    ...semaphore,
    garbage: [
      (own) => [own],
      (own) => [own, 1],
      // No slot, one that there is not, and half a slot.
      (own) => [own, 0, "ff", 0],
      (own) => [own, 3, "ff", 0],
      (own) => [own, 0.5, "ff", 0],
      // No states, too few, too many, others.
      (own) => [own, 2, "", 0],
      (own) => [own, 1, "f", 0],
      (own) => [own, 1, "fff", 0],
      (own) => [own, 2, "xf", 0],
      (own) => [own, 1, "fx", 0],
      (own) => [own, 1, 11, 0],
      (own) => [own, 1, ["f", "f"], 0],
      // No limit, half a limit, less than none.
      (own) => [own, 1, "ff"],
      (own) => [own, 1, "ff", 1.5],
      (own) => [own, 1, "ff", -1],
      // A refusal with a slot, without states, of true.
      () => [0, 1, "tt", 0],
      () => [0, 0],
      () => [true, 0, "tt", 0],
    ],
  },
  "an arrival at a latch": {
    ...latch,
    // Without a generation, or its own arrival.
    garbage: [...ofArrivals, (nonce) => [nonce, "", ["ia"], 3], (nonce) => [nonce, "g0", ["ib"], 3]],
  },
  "a call of debounce": {
    send: (to) => debounce(clientOf(to), "n", { window: 1 }, unreachable),
    echo: at(4),
    garbage: [
      (nonce) => [nonce],
      (nonce) => [nonce, "somebody", [], 0],
      (nonce) => [nonce, later(stranger)],
      () => [stranger, later(stranger), [], 0],
      (nonce) => [nonce, later(stranger.slice(1)), [], 0],
      (nonce) => [nonce, later(`${stranger}0`), [], 0],
      (nonce) => [nonce, ` ${later(stranger)}`, [], 0],
      (nonce) => [nonce, later(`v${stranger.slice(1)}`), [], 0],
      (nonce) => [nonce, `g${"9".repeat(16)}${stranger}`, [], 0],
    ],
  },
  "a member's acquire": {
    ...acquire,
    garbage: [...ofMembers, () => [0], () => [0, -1], () => [0, 1.5], () => [0, "5"]],
  },
  "a claim of an interval": {
    ...claim,
    garbage: [
      ...ofIntervals,
      () => [0],
      () => [0, 5],
      () => [0, -1, "r"],
      () => [0, 5, "x"],
      () => [value, "x"],
    ],
  },
  "a ticket of a fair lock": {
    ...queue,
    garbage: [(own) => [own, 1], (own) => [own], () => [0, "1"], () => [0, -1], () => [true, 0]],
  },
  "a post to a mailbox": {
    ...post,
    garbage: [
      () => [stranger, "stored", "", []],
      (own) => [own],
      (own) => [own, "open"],
      (own) => [own, "stored", 0, []],
      (own) => [own, "full", 1],
      (own) => [own, "late", "x"],
      (own) => [own, "late", 5.5],
      (own) => [own, "late"],
      ...ofMessages.map(
        (list): Reply =>
          (own) => [own, "stored", own, list],
      ),
    ],
  },
  "a step of a mailbox's turn": {
    ...step,
    garbage: [
      () => [stranger, "closed"],
      (own) => [own],
      (own) => [own, "stored"],
      ...ofMessages.map(
        (list): Reply =>
          (own) => [own, "open", [], list],
      ),
    ],
  },
  "a turn's extension": {
    ...turn,
    garbage: [(own) => [own], (own) => [own, "closed"], () => [stranger, "open"]],
  },
  "a look at a mailbox": {
    ...inspectMailbox,
    garbage: [
      (own) => [own, "open", "", 0],
      (own) => [own, "seen", 0, 0],
      (own) => [own, "seen", "", -1],
      () => [stranger, "seen", "", 0],
    ],
  },
  "forceRelease of a fair lock": { ...free("FairLock"), garbage: [(nonce) => [nonce, 1], () => [true]] },
  "forceRelease of once": { ...free("once"), garbage: [(nonce) => [nonce, 1], () => [false]] },
};

describe.each(Object.entries(asks))("%s", (_, { garbage, ...ask }) => {
  test.each([...nothing, ...garbage].map((reply) => [JSON.stringify(reply("its own")), reply] as const))(
    "does not take %s",
    async (_what, reply) => {
      const { error } = await outcomeWith(ask, reply);
      expect(error).toBeInstanceOf(Error);
      expect((error as Error).message).toMatch(/unexpected reply/);
    },
  );
});

test.each([1_700, "1700"])(
  "a post takes %j as the last stamp: a client in between may have parsed it",
  async (last) => {
    const { value: given } = await outcomeWith(post, (own) => [own, "late", last]);
    expect(given).toMatchObject({ outcome: "held", state: "late", last: 1_700 });
  },
);

test.each(["x", "", "0", -1, 0.5, 1_001, [], true])(
  "forceRelease of a semaphore does not take %j",
  async (reply) => {
    const { error } = await outcomeWith(free("Semaphore"), () => reply);
    expect((error as Error).message).toMatch(/unexpected reply/);
  },
);
