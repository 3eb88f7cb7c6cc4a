import { checkName, integer, type Schema } from "../../check/check.ts";
import type { Ask } from "../../endpoints/ask.ts";
import { QuorumError } from "../../errors/errors.ts";
import { checkCall, type LockClient, settingsOf } from "../../lock/client.ts";
import { type Settings, timeUntil } from "../../lock/options.ts";
import { retry } from "../../quorum/retry.ts";
import { type Round, runRound } from "../../quorum/round.ts";
import { type Answer, isVeto, quorumOf, type RoundResult } from "../../quorum/tally.ts";
import { keyOf } from "../../redis/keys.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { unlessAborted } from "../../runtime/abort.ts";
import { keepAlive, randomToken } from "../../runtime/runtime.ts";
import { channelOf } from "../../wake-up/channel.ts";
import { ArrivalsMissingError, LimitMismatchError } from "../errors.ts";
import { arrivalScript } from "./arrival.lua.ts";
import { checkSyncOptions, type WaitOptions, waitSchema } from "./hold.ts";
import { isInteger, itemsOf } from "./reply.ts";

// Within a generation, arrivals are a set that only grows, and an endpoint never returns to an earlier generation, so
// requests may be lost, late or executed twice. A client that sees a later generation writes it to a quorum before it
// returns: the read of a replicated cell by H. Attiya, A. Bar-Noy, D. Dolev, "Sharing Memory Robustly in
// Message-Passing Systems", 1995.

/** The greater text is the later generation: levels decide before runs. */
export function generation(level: number, run: string): string {
  return `g${String(level).padStart(16, "0")}${run}`;
}

export function levelOf(text: string): number {
  return Number(text.slice(1, 17));
}

export function runOf(text: string): string {
  return text.slice(17);
}

export interface ArrivalQuery {
  readonly to?: string;
  readonly id?: string;
}

export interface ArrivalSnapshot {
  readonly result: RoundResult;
  /** Of any endpoint, or `""`. */
  readonly latest: string;
  /** A quorum has the latest. */
  readonly isDecided: boolean;
  /** That any endpoint knows of. */
  readonly ids: ReadonlySet<string>;
  /** All answers are equal. */
  readonly isUnanimous: boolean;
}

/** Options of calls that arrive or wait. Nothing is held, so nothing is extended. */
export type ArrivalOptions = Omit<WaitOptions, "autoExtend" | "maxHold" | "driftFactor">;

const { autoExtend: _extend, maxHold: _hold, driftFactor: _drift, ...callSchema } = waitSchema;

export type ArrivalDefaults = Omit<ArrivalOptions, "signal" | "deadline">;

const { signal: _signal, deadline: _deadline, ...defaultsSchema } = callSchema;

/** 24 hours. */
export const defaultTtl = 86_400_000;

export interface ArrivalPlace {
  readonly name: string;
  /** Names its key and its channel. The last two have generations without arrivals. */
  readonly kind: "latch" | "barrier" | "debounce" | "singleton";
  /** How many complete a generation. Default: an operator does not know it, or there are none. */
  readonly count?: number;
}

export class Arrivals {
  /** How many arrivals complete a generation. */
  readonly count: number;
  readonly #redlock: LockClient;
  readonly #place: ArrivalPlace;
  readonly #defaults: ArrivalDefaults;

  constructor(
    redlock: LockClient,
    { name, kind, counted }: { name: string; kind: "latch" | "barrier"; counted: "count" | "parties" },
    given: ArrivalDefaults & { readonly count?: number; readonly parties?: number },
  ) {
    const schema = { ...defaultsSchema, [counted]: integer(1, 1_000) } as Schema<typeof given>;
    const Kind = kind === "latch" ? "CountDownLatch" : "CyclicBarrier";
    checkCall(`new ${Kind}(redlock, name, { ${counted}: 3 })`, { redlock, name, options: given });
    checkSyncOptions(`a ${kind}`, given, schema, { required: [counted], usual: counted });
    const { count, parties, ...defaults } = given;
    this.count = (count ?? parties)!;
    this.#redlock = redlock;
    this.#place = { name: checkName("name", name), kind, count: this.count };
    this.#defaults = defaults;
    this.settingsOf({});
  }

  settingsOf(options: ArrivalOptions): Settings {
    checkSyncOptions("the call", options, callSchema, { usual: "wait" });
    return settingsOf(this.#redlock, { ttl: defaultTtl }, this.#defaults, options);
  }

  async poll<Value>(
    options: ArrivalOptions,
    first: ArrivalQuery,
    next: Polling<Value>["next"],
  ): Promise<Value> {
    const { signal, deadline } = options;
    return poll(this.settingsOf(options), this.#place, { first, next, signal, deadline });
  }
}

interface Polling<Value> extends Pick<ArrivalOptions, "signal" | "deadline"> {
  readonly first: ArrivalQuery;
  next(snapshot: ArrivalSnapshot, query: ArrivalQuery): ArrivalQuery | { readonly value: Value };
  began?(round: Round<ArrivalAnswer>): void;
}

/**
 * A new query follows at once, a repeated one after a pause.
 *
 * @throws ArrivalsMissingError when the waiting is over, and QuorumError when too few endpoints answered by then
 */
export async function poll<Value>(
  settings: Settings,
  place: ArrivalPlace,
  { first, next, signal, deadline = Infinity, began }: Polling<Value>,
): Promise<Value> {
  const { name, kind, count } = place;
  const limit = timeUntil(deadline, settings.runtime);
  // One arrival serves all waiters.
  const listener = settings.wakeUp?.listen(settings, { kind, name: "all" }, [name]);
  let query = first;
  try {
    return await retry<Value>(settings, { signal, limit }, async (progress) => {
      const round = runRound(settings, (call) => queryEndpoint(call, settings, place, query));
      began?.(round);
      keepAlive(settings, round.done);
      const result = await unlessAborted(round.result, signal);
      if (!result) throw signal?.reason;
      const snapshot = snapshotOf(place, round, result);
      const decision = next(snapshot, query);
      if ("value" in decision) return decision;
      const isNew = decision.to !== query.to || decision.id !== query.id;
      query = decision;
      // A new query is finished even after the waiting, but not forever.
      const goesOn = isNew && progress.remaining() > -5 * settings.timeout;
      const isAnswered = result !== "unavailable";
      return {
        next: goesOn ? "at-once" : "pause",
        votes: round.votes(),
        rest(poll, remaining) {
          // Requests renew the ttl, too.
          const longest = Math.min(remaining, settings.ttl / 4);
          return poll > 0 && isAnswered ? listener?.wait({ round, poll, longest, signal }) : undefined;
        },
        end() {
          if (isAnswered && count)
            throw new ArrivalsMissingError(name, count, snapshot.ids.size, progress.elapsed());
          throw new QuorumError(count ? "watch" : kind, [name], round.votes());
        },
      };
    });
  } finally {
    listener?.close();
  }
}

export interface ArrivalAnswer extends Answer {
  readonly generation: string;
  readonly ids: readonly string[];
  /** 0: nobody has said it. */
  readonly expected: number;
}

export async function queryEndpoint(
  call: Ask,
  { runtime, prefix, ttl, wakeUp }: Settings,
  { name, kind, count }: ArrivalPlace,
  { to = "", id }: ArrivalQuery,
): Promise<ArrivalAnswer> {
  const nonce = randomToken(runtime);
  const key = keyOf(prefix, kind, name);
  // So that no client in between parses it as a number.
  const field = id === undefined ? "" : `i${id}`;
  const args = [nonce, to, count ?? "", ttl, field, ...(wakeUp ? [channelOf(prefix, kind, name)] : [])];
  const [echo, generation, ids, expected] = itemsOf(await runScript(call, arrivalScript, [key], args));
  const isReply = echo === nonce && typeof generation === "string" && isGeneration(kind, generation, to);
  if (!isReply || !Array.isArray(ids) || !isInteger(expected)) throw unexpectedReply();
  if (count && expected !== count) return { outcome: "held", generation: "", ids: [], expected };
  // Unless it is withdrawn, an endpoint cannot stay behind, nor lack the added arrival.
  const isEarlier = generation < to && ttl > 0;
  if (isEarlier || (generation === to && field && !ids.includes(field))) throw unexpectedReply();
  return { outcome: !to || generation === to ? "granted" : "held", generation, ids, expected };
}

function isGeneration(kind: ArrivalPlace["kind"], text: string, asked: string): boolean {
  if (text === "" || text === asked) return true;
  if (kind === "latch" || kind === "barrier") return /^g\w+$/.test(text);
  // The next call must be able to count on.
  return /^g\d{16}t[0-9a-f]{32}$/.test(text) && levelOf(text) < Number.MAX_SAFE_INTEGER;
}

function snapshotOf(
  { name, kind, count }: ArrivalPlace,
  round: Round<ArrivalAnswer>,
  result: RoundResult,
): ArrivalSnapshot {
  const total = round.calls.length;
  const answers = round.answers();
  // A client with a wrong number may have reached a minority first.
  const others = answers.filter(({ expected }) => count && expected !== count);
  if (isVeto(others.length, total)) {
    throw new LimitMismatchError(kind as "latch" | "barrier", name, count!, others[0]!.expected);
  }
  const latest = latestOf(answers);
  const current = answers.filter(({ generation }) => generation === latest);
  const ids = new Set(current.flatMap((answer) => answer.ids));
  const isUnanimous = answers.every(
    (answer) => answer.generation === latest && answer.ids.length === ids.size,
  );
  return { result, latest, isDecided: current.length >= quorumOf(total), ids, isUnanimous };
}

export function latestOf(answers: readonly ArrivalAnswer[]): string {
  return ["", ...answers.map(({ generation }) => generation)].sort().pop()!;
}
