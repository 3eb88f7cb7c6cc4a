import type { HoldStrategy } from "../../bridge/strategy.ts";
import type { Ask } from "../../endpoints/ask.ts";
import type { Settings } from "../../lock/options.ts";
import { isVeto, quorumOf } from "../../quorum/tally.ts";
import { type Cell, type CellAnswer, keep } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, stopwatch } from "../../runtime.ts";
import { LimitMismatchError } from "../errors.ts";
import { isInteger, itemsOf } from "./reply.ts";
import { slotScript } from "./slot.lua.ts";

// A semaphore has one slot per permit, and a slot is a lock. So the limit is as exact as a lock is exclusive. Counting
// holders on each endpoint is not: with a limit of 2, three endpoints can each admit a different two of three holders.

/** One endpoint's answer about the slots. */
interface SlotAnswer extends CellAnswer {
  /** Key of the slot that has the value. */
  readonly slotKey?: string | undefined;
  /** Keys of the slots that were free before. */
  readonly free: readonly string[];
  /** The limit in use there, where it is another one. */
  readonly inUse?: number | undefined;
}

/**
 * Proposes a random slot first, then each slot that a quorum may have free, then waits. With one endpoint the script
 * picks the slot, and nothing needs a second round.
 *
 * @param onGranted is told the slot that was granted, 0 … limit − 1
 */
export function slotStrategy(
  { runtime, prefix, endpoints, wait }: Settings,
  { name, limit }: { readonly name: string; readonly limit: number },
  onGranted: (slot: number) => void,
): HoldStrategy<SlotAnswer> {
  const count = endpoints.length;
  const limitKey = keyOf(prefix, "limit", name);
  const slots = Array.from({ length: limit }, (_, slot) => keyOf(prefix, `slot:${slot}`, name));
  const tried = new Set<string>();
  const waited = stopwatch(runtime);
  let proposed = pick(slots, runtime);
  return {
    waiter: { kind: "semaphore" },
    heldText: limit === 1 ? ": its permit is held" : `: all ${limit} permits are held`,
    keys() {
      if (count > 1) return [proposed];
      const first = slots.indexOf(proposed);
      return [...slots.slice(first), ...slots.slice(0, first)];
    },
    acquire(call, cell, ttl) {
      const others = slots.filter((slot) => count > 1 && slot !== proposed);
      return operate(call, cell, { limitKey, limit, ttl, span: cell.keys.length, others });
    },
    extend: (call, cell, ttl) =>
      ttl > 0 ? operate(call, cell, { limitKey, limit, ttl, span: 0, others: [] }) : keep(call, cell, 0),
    granted(round) {
      const granted = round.answers().flatMap(({ slotKey }) => slotKey || [])[0]!;
      onGranted(slots.indexOf(granted));
      return [granted];
    },
    afterFailedRound(round, isHeld) {
      const answers = round.answers();
      // Only where no quorum remains: a minority may have been reached first by a client with a wrong limit.
      const others = answers.flatMap(({ inUse = 0 }) => inUse || []);
      if (isVeto(others.length, count)) return new LimitMismatchError(name, limit, others[0]!);
      tried.add(proposed);
      const freeAt = countFree(slots, answers);
      // The result was clear before all had answered: those that have not may have the slot free.
      const pending = round.calls.filter(({ answer }) => !answer).length;
      const open = slots.filter((slot) => freeAt.get(slot)! + pending >= quorumOf(count) && !tried.has(slot));
      const triesNext = open.length > 0 && (isHeld || waited() < wait);
      if (!triesNext) tried.clear();
      proposed = pick(mostFree(triesNext ? open : slots, freeAt), runtime);
      return triesNext ? "at-once" : "pause";
    },
  };
}

/** By slot: at how many endpoints it was free. */
function countFree(slots: readonly string[], answers: readonly SlotAnswer[]): Map<string, number> {
  const freeAt = new Map(slots.map((slot) => [slot, 0]));
  for (const slot of answers.flatMap(({ free }) => free)) freeAt.set(slot, freeAt.get(slot)! + 1);
  return freeAt;
}

/** Those of the slots that were free at the most endpoints. */
function mostFree(slots: readonly string[], freeAt: ReadonlyMap<string, number>): readonly string[] {
  const most = Math.max(...slots.map((slot) => freeAt.get(slot)!));
  return slots.filter((slot) => freeAt.get(slot) === most);
}

function pick(slots: readonly string[], runtime: Pick<Runtime, "random">): string {
  return slots[Math.floor(runtime.random() * slots.length)]!;
}

/** One run of the script, beside its cell. */
interface SlotOperation {
  readonly limitKey: string;
  readonly limit: number;
  readonly ttl: number;
  /** How many of the cell's keys may be acquired; 0: only extend. */
  readonly span: number;
  /** Slots of which only the state is read. */
  readonly others: readonly string[];
}

async function operate(
  call: Ask,
  { keys, value }: Cell,
  { limitKey, limit, ttl, span, others }: SlotOperation,
): Promise<SlotAnswer> {
  const refusal = span === 0 ? "lost" : "held";
  const names = [...keys, ...others];
  const args = [value, limit, ttl, span];
  const [echo, index, states] = itemsOf(await runScript(call, slotScript, [limitKey, ...names], args));
  if (echo === 0 && states === "" && isInteger(index) && index !== limit) {
    return { outcome: refusal, free: [], inUse: index };
  }
  const isSane = typeof states === "string" && states.length === names.length && /^[ft]+$/.test(states);
  if (!isSane || (echo === 0) !== (index === 0)) throw unexpectedReply();
  const free = names.filter((_, slot) => states[slot] === "f");
  if (echo === 0) return { outcome: refusal, free };
  const slotKey = names[Number(index) - 1];
  if (echo !== value || !slotKey) throw unexpectedReply();
  return { outcome: "granted", slotKey, free };
}
