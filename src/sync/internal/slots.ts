import type { Call } from "../../endpoints/call.ts";
import type { LockStrategy } from "../../lock/acquire.ts";
import type { Round } from "../../quorum/round.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { extend, type Register, type RegisterAnswer } from "../../redis/register.ts";
import { runScript, type Script, unexpectedReply } from "../../redis/script.ts";
import type { Runtime } from "../../runtime.ts";
import { LimitMismatchError } from "../errors.ts";

// The permits of a semaphore: a slot each, and a slot is a lock. So the limit is as exact as a lock is exclusive,
// which a count of holders on each endpoint is not: of three endpoints each may admit another two of three.

/**
 * What one endpoint does with the slots of a semaphore.
 *
 * KEYS: the limit; the slots, those first that may be taken.
 *
 * ARGV: 1. the value; 2. the limit; 3. ttl in ms; 4. how many slots may be taken; 0: none, only renew the value's.
 *
 * The limit stands at least as long as any slot that was granted with it. Of two holders' quorums one endpoint is in
 * both, so that whoever comes second with another limit is refused there.
 *
 * Replies: {value, the slot's place among the keys, the slots}: it is the value's. {0, 0, the slots}: none is. The
 * slots are in the order of the keys, `t` for one that was taken and `f` for a free one; letters, because clients in
 * between parse what looks like a number. {0, the limit in use, ""}: it is another one.
 *
 * Only a renewal shortens a ttl: a take that is executed a second time, late, must not undo an extension.
 */
export const slotScript: Script = {
  source: `local value, limit, ttl, span = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local found = redis.call("MGET", unpack(KEYS))
if found[1] and found[1] ~= limit then return {0, tonumber(found[1]), ""} end
local place, slots, least = 0, "", 0
for i = 2, #KEYS do
  slots = slots .. (found[i] and "t" or "f")
  if found[i] == value then place = i end
end
if place > 0 and span > 0 then least = redis.call("PTTL", KEYS[place]) end
for i = 2, span + 1 do
  if place == 0 and not found[i] then place = i end
end
if place == 0 then return {0, 0, slots} end
redis.call("SET", KEYS[place], value, "PX", math.max(ttl, least))
redis.call("SET", KEYS[1], limit, "PX", math.max(ttl, least, redis.call("PTTL", KEYS[1])))
return {value, place - 1, slots}`,
  sha: {
    redis: "1e14dd01c1dc8ca7e66d7937f26e598788f6a170",
    upstash: "efd365f1115d3c778512e63e56a39dbce3c1d060",
  },
};

/** One endpoint's answer about the slots. */
export interface SlotAnswer extends RegisterAnswer {
  /** The slot that is the value's, as a key. */
  readonly slotKey?: string | undefined;
  /** Keys of the slots that were free before. */
  readonly free: readonly string[];
  /** Another limit than the one asked for, which is in use there. */
  readonly inUse?: number | undefined;
}

/** What is asked for of a semaphore. */
export interface SlotRequest {
  readonly runtime: Runtime;
  readonly prefix: string;
  readonly name: string;
  readonly limit: number;
  /** How many endpoints there are. */
  readonly count: number;
}

/** A strategy for one of a semaphore's slots. */
export interface SlotStrategy extends LockStrategy {
  /** The slot that was granted, 0 … limit − 1. */
  slot(): number;
}

/**
 * Proposes a random slot first, then one that a quorum may have free, as long as there is one that has not been
 * tried; then it waits. With one endpoint the script picks the slot, and nothing needs a second round.
 */
export function slotStrategy({ runtime, prefix, name, limit, count }: SlotRequest): SlotStrategy {
  const limitKey = keyOf(prefix, "limit", name);
  const slots = Array.from({ length: limit }, (_, slot) => keyOf(prefix, `slot:${slot}`, name));
  const tried = new Set<string>();
  let proposed = slots[Math.floor(runtime.random() * limit)]!;
  let granted = "";

  async function operate(call: Call, register: Register, ttl: number, span: number): Promise<SlotAnswer> {
    const { keys, value } = register;
    const refusal = span === 0 ? "lost" : "held";
    const others = span === 0 ? [] : slots.filter((slot) => count > 1 && slot !== proposed);
    const names = [...keys, ...others];
    const reply = await runScript(call, slotScript, [limitKey, ...names], [value, limit, ttl, span]);
    const { cost } = call;
    const [echo, place, states] = Array.isArray(reply) && reply.length === 3 ? reply : [];
    // What Upstash bills beside the script itself.
    cost.commands += 1;
    if (echo === 0 && states === "" && Number.isSafeInteger(place) && place !== limit) {
      return { outcome: refusal, free: [], inUse: place };
    }
    const isSane = typeof states === "string" && states.length === names.length && /^[ft]+$/.test(states);
    if (!isSane || (echo === 0) !== (place === 0)) throw unexpectedReply();
    const free = names.filter((_, index) => states[index] === "f");
    if (echo === 0) return { outcome: refusal, free };
    if (echo !== value || !names[place - 1]) throw unexpectedReply();
    cost.commands += span > 0 && states[place - 1] === "t" ? 4 : 3;
    return { outcome: "granted", slotKey: names[place - 1], free };
  }

  return {
    keys() {
      if (count > 1) return [proposed];
      const first = slots.indexOf(proposed);
      return [...slots.slice(first), ...slots.slice(0, first)];
    },
    acquire: (call, register, ttl) => operate(call, register, ttl, register.keys.length),
    extend: (call, register, ttl) => (ttl > 0 ? operate(call, register, ttl, 0) : extend(call, register, 0)),
    grantedKeys({ answers }) {
      granted = answers.flatMap((answer) => (answer as SlotAnswer | undefined)?.slotKey ?? [])[0]!;
      return [granted];
    },
    slot: () => slots.indexOf(granted),
    afterFailedRound(round: Round<RegisterAnswer>, { held, remainingWait }) {
      const answers = round.answers.flatMap((answer) =>
        answer && answer.outcome !== "error" ? [answer as SlotAnswer] : [],
      );
      // By so many that no quorum is left. Of fewer, it may be they that heard of a wrong limit first.
      const others = answers.flatMap(({ inUse = 0 }) => inUse || []);
      if (others.length > count - quorumOf(count)) return new LimitMismatchError(name, limit, others[0]!);
      tried.add(proposed);
      const freeAt = new Map(slots.map((slot) => [slot, 0]));
      for (const slot of answers.flatMap(({ free }) => free)) freeAt.set(slot, freeAt.get(slot)! + 1);
      const best = (among: readonly string[]): string => {
        const most = Math.max(...among.map((slot) => freeAt.get(slot)!));
        const equals = among.filter((slot) => freeAt.get(slot) === most);
        return equals[Math.floor(runtime.random() * equals.length)]!;
      };
      // The result fell before all had answered: those that have not may have it free.
      const pending = round.answers.filter((answer) => !answer).length;
      const open = slots.filter((slot) => freeAt.get(slot)! + pending >= quorumOf(count) && !tried.has(slot));
      if (open.length > 0 && (held || remainingWait > 0)) {
        proposed = best(open);
        return "again";
      }
      tried.clear();
      proposed = best(slots);
      return "wait";
    },
  };
}
