import { openSync, writeSync } from "node:fs";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { isRedlockError, type Lock, Redlock, type RedlockEvent } from "../../../src/index.ts";
import { seededRandom } from "../../support/random.ts";
import {
  type Account,
  accounts,
  type ClientRecord,
  type ClientSettings,
  type FromClient,
  machineTime,
  type Question,
  type ToClient,
} from "./records.ts";

// One client process: increments accounts under locks, and runs events once. It behaves well, as far as a
// program can: it writes only while its hold is valid. That it may be stopped between looking and writing, or
// that its write may be late, it cannot help.

const workers = 2;

const settings = JSON.parse(process.argv[2]!) as ClientSettings;
const random = seededRandom(settings.seed);
const log = openSync(settings.logFile, "a");
// Many clients on a busy machine: what contends must leave the endpoints time to answer.
const redlock = new Redlock({ endpoints: settings.endpoints, backoff: { min: 100, max: 1000 } });
const idempotency = new Idempotency(redlock);

// A Ctrl-C in the terminal is for the supervisor, which ends its clients in order.
process.on("SIGINT", () => undefined);
// Without a supervisor there is nothing left to do.
process.on("disconnect", () => process.exit());

type Entry = ClientRecord extends infer Each ? (Each extends unknown ? Omit<Each, "at"> : never) : never;

function note(entry: Entry, at: number = machineTime()): void {
  writeSync(log, `${JSON.stringify({ at, ...entry })}\n`);
}

/** The clock is read before `remaining`, so that being stopped in between makes the time earlier, never later. */
function validity(of: { remaining(): number }): { at: number; until: number } {
  const at = machineTime();
  return { at, until: at + of.remaining() };
}

function between(least: number, most: number): number {
  return Math.floor(least + random() * (most - least));
}

function chance(share: number): boolean {
  return random() < share;
}

function tell(message: FromClient): void {
  process.send!(message);
}

const questions = new Map<number, (balance: number | null) => void>();
let asked = 0;

function ask(question: Question): Promise<number | null> {
  asked += 1;
  const id = asked;
  return new Promise((resolve) => {
    questions.set(id, resolve);
    tell({ type: "question", id, question });
  });
}

let holds = 0;

function newHold(): string {
  holds += 1;
  return `${settings.name}/${holds}`;
}

/** Most work is shorter than the ttl, some is longer. */
function workTime(ttl: number): number {
  return chance(0.15) ? between(ttl, 2 * ttl) : between(0, ttl / 3);
}

/** Looks whether the hold is valid, and then takes the moment that every request takes to be on its way. */
async function aboutToWrite(
  hold: string,
  ttl: number,
  of: Pick<Lock, "remaining" | "signal">,
  extended: boolean,
): Promise<boolean> {
  const { at, until } = validity(of);
  if (until <= at || of.signal.aborted) return false;
  note({ type: "valid", hold, until, extended }, at);
  tell({ type: "checked", ttl });
  await sleep(between(5, 20));
  return true;
}

async function increment(account: Account): Promise<void> {
  const { name, guard } = account;
  const hold = newHold();
  const ttl = between(200, 1500);
  const autoExtend = chance(0.5);
  let lock: Lock | undefined;
  function onEvent(event: RedlockEvent): void {
    if (event.type === "contended") note({ type: "contended", resource: name });
    if (event.type !== "extended" || !lock) return;
    const { at, until } = validity(lock);
    note({ type: "valid", hold, until, extended: true }, at);
  }
  note({ type: "acquiring", hold, resource: name, ttl });
  try {
    lock = await redlock.acquire(name, {
      ttl,
      wait: between(200, 3000),
      timeout: ttl / 2,
      fencing: guard !== "none",
      autoExtend,
      maxHold: 5000,
      onEvent,
    });
  } catch (error) {
    note({ type: "refused", hold, code: codeOf(error) });
    return;
  }
  const { fence } = lock;
  const { at, until } = validity(lock);
  note({ type: "granted", hold, until, ...(fence !== undefined && { fence }) }, at);
  await addOne(hold, lock, account, ttl);
  // Some forget to release, and leave it to the ttl.
  if (!autoExtend && chance(0.03)) return;
  note({ type: "releasing", hold });
  try {
    note({ type: "released", hold, outcome: (await lock.release()) ? "freed" : "gone" });
  } catch (error) {
    codeOf(error);
    note({ type: "released", hold, outcome: "unknown" });
  }
}

async function addOne(hold: string, lock: Lock, { name, guard }: Account, ttl: number): Promise<void> {
  const fence = lock.fence ?? 0;
  note({ type: "opening", hold });
  const balance = await ask(
    guard === "opened" ? { ask: "open", account: name, fence } : { ask: "read", account: name },
  );
  note({ type: "opened", hold, balance });
  if (balance === null) return;
  await sleep(workTime(ttl));
  if (!(await aboutToWrite(hold, ttl, lock, false))) return;
  note({ type: "writing", hold, balance: balance + 1 });
  const written = await ask({ ask: "write", account: name, balance: balance + 1, fence });
  note({ type: "written", hold, balance: written });
}

class HandlerFailure extends Error {}

/** Runs the event once, or learns what its run came to; as senders do, it tries until it knows. */
async function deliver(delivery: number, event: string): Promise<void> {
  for (;;) {
    const hold = newHold();
    const lease = between(300, 1500);
    note({ type: "acquiring", hold, resource: event, ttl: lease });
    try {
      const { status, value } = await idempotency.run(
        event,
        {
          lease,
          wait: between(0, 800),
          maxHold: 4000,
          onEvent: ({ type }) => note({ type: "ran", hold, how: type }),
        },
        async (run) => {
          const { at, until } = validity(run);
          note({ type: "granted", hold, until }, at);
          try {
            if (chance(0.05)) throw new HandlerFailure("before its effect");
            await sleep(workTime(lease));
            // A renewal of the lease is not told.
            if (!(await aboutToWrite(hold, lease, run, true))) throw new HandlerFailure("its lease is over");
            await ask({ ask: "effect", event, run: hold });
            if (chance(0.05)) throw new HandlerFailure("after its effect");
            return hold;
          } finally {
            note({ type: "releasing", hold });
          }
        },
      );
      note({ type: "answered", hold, resource: event, status, value });
      tell({ type: "delivered", delivery });
      return;
    } catch (error) {
      if (!(error instanceof HandlerFailure)) note({ type: "refused", hold, code: codeOf(error) });
      await sleep(between(50, 250));
    }
  }
}

/** An error that is not one of the library's own is a defect, and must not pass for an outage. */
function codeOf(error: unknown): string {
  if (isRedlockError(error)) return error.code;
  throw error;
}

let draining = false;

async function work(): Promise<void> {
  while (!draining) {
    await increment(accounts[between(0, accounts.length)]!);
    await sleep(between(0, 40));
  }
}

/** Takes every lock once, in an order of its own. */
async function probe(): Promise<void> {
  const first = between(0, accounts.length);
  for (let turn = 0; turn < accounts.length; turn++) {
    const { name, guard } = accounts[(first + turn) % accounts.length]!;
    const lock = await redlock.acquire(name, { ttl: 1000, wait: 20_000, fencing: guard !== "none" });
    await lock.release();
  }
  tell({ type: "phase", phase: "probed" });
}

const working = Promise.all(Array.from({ length: workers }, work));

process.on("message", (message: ToClient) => {
  switch (message.type) {
    case "answer":
      questions.get(message.id)?.(message.balance);
      questions.delete(message.id);
      break;
    case "deliver":
      void deliver(message.delivery, message.event);
      break;
    case "drain":
      draining = true;
      void working.then(() => tell({ type: "phase", phase: "drained" }));
      break;
    case "probe":
      void probe();
      break;
  }
});
tell({ type: "phase", phase: "started" });
