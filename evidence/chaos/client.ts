import { openSync, writeSync } from "node:fs";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Idempotency } from "../../src/idempotency/index.ts";
import { isRedlockError, type Lock, Redlock, type RedlockEvent } from "../../src/index.ts";
import { Draw } from "../sim/draw.ts";
import {
  type Account,
  accounts,
  type ClientRecord,
  type ClientSettings,
  type FromClient,
  type LedgerRequest,
  machineTime,
  type ToClient,
} from "./records.ts";

// One client process: increments accounts under locks, and runs events once. It writes only while its hold is valid.
// It cannot prevent being stopped between the check and the write, nor that its write arrives late.

const workers = 2;

const settings = JSON.parse(process.argv[2]!) as ClientSettings;
const draw = new Draw(settings.seed);
const logFile = openSync(settings.logFile, "a");
// Many clients on a busy machine: contenders must leave the endpoints time to answer.
const redlock = new Redlock({ endpoints: settings.endpoints, backoff: { min: 100, max: 1000 } });
const idempotency = new Idempotency(redlock);

// Ctrl-C in the terminal is for the supervisor, which ends its clients itself.
process.on("SIGINT", () => undefined);
// Without a supervisor there is nothing to do.
process.on("disconnect", () => process.exit());

type Entry = ClientRecord extends infer Each ? (Each extends unknown ? Omit<Each, "at"> : never) : never;

function log(entry: Entry, at: number = machineTime()): void {
  writeSync(logFile, `${JSON.stringify({ at, ...entry })}\n`);
}

/** Reads the clock before `remaining`: if the process is stopped in between, `until` is too early, never too late. */
function validity(of: { remaining(): number }): { at: number; until: number } {
  const at = machineTime();
  return { at, until: at + of.remaining() };
}

function send(message: FromClient): void {
  process.send!(message);
}

/** Requests to the ledger that wait for their answer, by id. */
const pending = new Map<number, (balance: number | null) => void>();
let requests = 0;

function requestLedger(request: LedgerRequest): Promise<number | null> {
  requests += 1;
  const id = requests;
  return new Promise((resolve) => {
    pending.set(id, resolve);
    send({ type: "request", id, request });
  });
}

let holds = 0;

function newHold(): string {
  holds += 1;
  return `${settings.name}/${holds}`;
}

/** Most work is shorter than the ttl, some is longer. */
function workTime(ttl: number): number {
  return draw.chance(0.15) ? draw.integer(ttl, 2 * ttl) : draw.integer(0, ttl / 3);
}

/** Checks that the hold is valid, and then waits as long as a request takes to its server. */
async function checkBeforeWrite(
  hold: string,
  ttl: number,
  of: Pick<Lock, "remaining" | "signal">,
  extended: boolean,
): Promise<boolean> {
  const { at, until } = validity(of);
  if (until <= at || of.signal.aborted) return false;
  log({ type: "valid", hold, until, extended }, at);
  send({ type: "about-to-write", ttl });
  await sleep(draw.integer(5, 20));
  return true;
}

async function increment(account: Account): Promise<void> {
  const { name, guard } = account;
  const hold = newHold();
  const ttl = draw.integer(200, 1500);
  const autoExtend = draw.chance(0.5);
  let lock: Lock | undefined;
  function onEvent(event: RedlockEvent): void {
    if (event.type === "contended") log({ type: "contended", resource: name });
    if (event.type !== "extended" || !lock) return;
    const { at, until } = validity(lock);
    log({ type: "valid", hold, until, extended: true }, at);
  }
  log({ type: "acquiring", hold, resource: name, ttl });
  try {
    lock = await redlock.acquire(name, {
      ttl,
      wait: draw.integer(200, 3000),
      timeout: ttl / 2,
      fencing: guard !== "none",
      autoExtend,
      maxHold: 5000,
      onEvent,
    });
  } catch (error) {
    log({ type: "refused", hold, code: codeOf(error) });
    return;
  }
  const { fence } = lock;
  const { at, until } = validity(lock);
  log({ type: "granted", hold, until, ...(fence !== undefined && { fence }) }, at);
  await addOne(hold, lock, account, ttl);
  // Some forget to release, and leave it to the ttl.
  if (!autoExtend && draw.chance(0.03)) return;
  log({ type: "releasing", hold });
  try {
    log({ type: "released", hold, outcome: (await lock.release()) ? "freed" : "gone" });
  } catch (error) {
    codeOf(error);
    log({ type: "released", hold, outcome: "unknown" });
  }
}

async function addOne(hold: string, lock: Lock, { name, guard }: Account, ttl: number): Promise<void> {
  const fence = lock.fence ?? 0;
  log({ type: "opening", hold });
  const balance = await requestLedger(
    guard === "opened" ? { kind: "open", account: name, fence } : { kind: "read", account: name },
  );
  log({ type: "opened", hold, balance });
  if (balance === null) return;
  await sleep(workTime(ttl));
  if (!(await checkBeforeWrite(hold, ttl, lock, false))) return;
  log({ type: "writing", hold, balance: balance + 1 });
  const written = await requestLedger({ kind: "write", account: name, balance: balance + 1, fence });
  log({ type: "written", hold, balance: written });
}

class HandlerFailure extends Error {}

/** Runs the event, or gets its result. Retries until it has a result, as senders of webhooks do. */
async function deliver(delivery: number, event: string): Promise<void> {
  for (;;) {
    const hold = newHold();
    const lease = draw.integer(300, 1500);
    log({ type: "acquiring", hold, resource: event, ttl: lease });
    try {
      const { status, value } = await idempotency.run(
        event,
        {
          lease,
          wait: draw.integer(0, 800),
          maxHold: 4000,
          onEvent: ({ type }) => log({ type: "ran", hold, how: type }),
        },
        async (run) => {
          const { at, until } = validity(run);
          log({ type: "granted", hold, until }, at);
          try {
            if (draw.chance(0.05)) throw new HandlerFailure("before its effect");
            await sleep(workTime(lease));
            // No event reports a renewal of the lease.
            if (!(await checkBeforeWrite(hold, lease, run, true)))
              throw new HandlerFailure("its lease is over");
            await requestLedger({ kind: "effect", event, run: hold });
            if (draw.chance(0.05)) throw new HandlerFailure("after its effect");
            return hold;
          } finally {
            log({ type: "releasing", hold });
          }
        },
      );
      log({ type: "answered", hold, resource: event, status, value });
      send({ type: "delivered", delivery });
      return;
    } catch (error) {
      if (!(error instanceof HandlerFailure)) log({ type: "refused", hold, code: codeOf(error) });
      await sleep(draw.integer(50, 250));
    }
  }
}

/** @throws any other error: it is a defect, and must not count as an outage */
function codeOf(error: unknown): string {
  if (isRedlockError(error)) return error.code;
  throw error;
}

let draining = false;

async function work(): Promise<void> {
  while (!draining) {
    await increment(draw.pick(accounts));
    await sleep(draw.integer(0, 40));
  }
}

/** Acquires every lock once, each client in another order. */
async function probe(): Promise<void> {
  const next = draw.deck(accounts);
  for (let left = accounts.length; left > 0; left -= 1) {
    const { name, guard } = next();
    const lock = await redlock.acquire(name, { ttl: 1000, wait: 20_000, fencing: guard !== "none" });
    await lock.release();
  }
  send({ type: "phase", phase: "probed" });
}

const working = Promise.all(Array.from({ length: workers }, work));

process.on("message", (message: ToClient) => {
  switch (message.type) {
    case "answer":
      pending.get(message.id)?.(message.balance);
      pending.delete(message.id);
      break;
    case "deliver":
      void deliver(message.delivery, message.event);
      break;
    case "drain":
      draining = true;
      void working.then(() => send({ type: "phase", phase: "drained" }));
      break;
    case "probe":
      void probe();
      break;
  }
});
send({ type: "phase", phase: "started" });
