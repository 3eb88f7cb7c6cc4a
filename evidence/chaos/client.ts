import { openSync, writeSync } from "node:fs";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { Idempotency } from "../../src/idempotency/index.ts";
import { isRedlockError, type Lock, Redlock } from "../../src/index.ts";
import { Draw } from "../sim/draw.ts";
import {
  type ClientRecord,
  type ClientSettings,
  isFenced,
  machineTime,
  type Order,
  resources,
} from "./records.ts";

// One client process: takes locks in turns, and runs events once. Its log says what it relied on, and when.

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

function log(news: ClientRecord): void {
  writeSync(logFile, `${JSON.stringify(news)}\n`);
}

/** Reads the clock before `remaining`: if the process is stopped in between, `until` is too early, never too late. */
function validity(of: { remaining(): number }): { at: number; until: number } {
  const at = machineTime();
  return { at, until: at + of.remaining() };
}

let holds = 0;

function newHold(resource: string): string {
  holds += 1;
  const id = `${settings.name}/${holds}`;
  log({ id, resource, called: machineTime() });
  return id;
}

/** Most work is shorter than the ttl, some is longer. */
function workTime(ttl: number): number {
  return draw.chance(0.15) ? draw.integer(ttl, 2 * ttl) : draw.integer(0, ttl / 3);
}

/** @throws any error that is not one of the library: it is a defect, and must not count as an outage */
function refused(id: string, error: unknown): void {
  if (!isRedlockError(error)) throw error;
  log({ id, refused: error.code });
}

async function useLock(resource: string): Promise<void> {
  const id = newHold(resource);
  const ttl = draw.integer(600, 2500);
  const autoExtend = draw.chance(0.5);
  const wait = draw.integer(200, 3000);
  const options = { ttl, wait, timeout: ttl / 2, fencing: isFenced(resource), autoExtend, maxHold: 6000 };
  let lock: Lock;
  try {
    lock = await redlock.acquire(resource, options);
  } catch (error) {
    return refused(id, error);
  }
  const { at: granted, until } = validity(lock);
  log({ id, granted, until, ...(lock.fence !== undefined && { fence: lock.fence }) });
  await sleep(workTime(ttl));
  relyOn(id, lock);
  await sleep(draw.integer(5, 20));
  // Some forget to release, and leave it to the ttl.
  if (!autoExtend && draw.chance(0.03)) return;
  log({ id, ended: machineTime() });
  await lock.release();
}

/** The worst moment to be stopped is right after this. */
function relyOn(id: string, of: { remaining(): number }): void {
  const { at, until } = validity(of);
  if (until > at) log({ id, until });
}

class HandlerFailure extends Error {}

/** Runs the event, or gets its result. Retries until it has a result, as senders of webhooks do. */
async function runEvent(event: string): Promise<void> {
  for (;;) {
    const id = newHold(event);
    const lease = draw.integer(1500, 4000);
    const options = { lease, wait: draw.integer(0, 800), maxHold: 6000 };
    try {
      const { value } = await idempotency.run(event, options, async (run) => {
        const { at: granted, until } = validity(run);
        log({ id, granted, until });
        try {
          if (draw.chance(0.05)) throw new HandlerFailure("at its beginning");
          await sleep(workTime(lease));
          relyOn(id, run);
          if (draw.chance(0.05)) throw new HandlerFailure("at its end");
          return id;
        } finally {
          log({ id, ended: machineTime() });
        }
      });
      log({ id, answered: { at: machineTime(), value } });
      return;
    } catch (error) {
      if (!(error instanceof HandlerFailure)) refused(id, error);
      await sleep(draw.integer(50, 250));
    }
  }
}

let draining = false;

async function untilDrained(work: () => Promise<void>): Promise<void> {
  while (!draining) {
    await work();
    await sleep(draw.integer(0, 40));
  }
}

/** All clients get each event at about the same time. */
function nextEvent(): Promise<void> {
  return runEvent(`event-${Math.floor(machineTime() / 700)}`);
}

const lockAny = () => useLock(draw.pick(resources));
const working = Promise.all([untilDrained(lockAny), untilDrained(lockAny), untilDrained(nextEvent)]);

/** Acquires every lock once, each client in another order. */
async function probe(): Promise<void> {
  const next = draw.deck(resources);
  for (let left = resources.length; left > 0; left -= 1) {
    const resource = next();
    const lock = await redlock.acquire(resource, { ttl: 1000, wait: 20_000, fencing: isFenced(resource) });
    await lock.release();
  }
}

/** Says that it has begun, or has done what it was asked for. */
function done(): void {
  process.send!("done");
}

process.on("message", (order: Order) => {
  draining = true;
  void (order === "drain" ? working : probe()).then(done);
});
done();
