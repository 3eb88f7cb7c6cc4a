import { type Call, type RequestCost, send } from "../endpoints/call.ts";
import { type EndpointError, QuorumError } from "../errors.ts";
import type { Settings } from "../lock/options.ts";
import { type Failure, type Round, runRound } from "../quorum/round.ts";
import { type Answer, quorumOf, type RoundResult } from "../quorum/tally.ts";
import {
  acquireOrRead,
  extend,
  isSnapshot,
  type Register,
  type RegisterAnswer,
  release,
} from "../redis/register.ts";
import { registerScript } from "../redis/register-script.ts";
import { runScript, unexpectedReply, upstashFlag } from "../redis/script.ts";
import { InProgressError } from "./errors.ts";
import {
  classifyRecords,
  countOf,
  noFingerprint,
  parseRecord,
  pendingText,
  type RecordState,
  type UnstoredReason,
} from "./record.ts";

// The steps of a run, each one command per endpoint, and what operators do with a key. Nothing is read with a
// plain GET, which a lagging replica may answer: every decision of a run comes from a command that writes or
// compares, and operators look with the script, which only a primary runs.

/** A key, and where it is in Redis. */
export interface RecordKeys {
  readonly key: string;
  /** Of the record. */
  readonly name: string;
  /** Where runs are counted. */
  readonly counter: string;
}

/** What a round of begins came to. */
export type Begin =
  | { readonly kind: "run" }
  /** Granted, with nothing left of the lease; or too few answers to tell. */
  | { readonly kind: "unclear" }
  /** Granted, to one run more than may be begun. */
  | { readonly kind: "dead"; readonly attempts: number }
  | RecordState;

/** Asks every endpoint to begin a run: `own` is its key with the pending record. */
export function runBeginRound(
  settings: Settings,
  own: Register,
  cost: RequestCost,
  cutsShort: boolean,
): Round<RegisterAnswer> {
  const { ttl: lease, timeout } = settings;
  const context = { ...settings, timeout: Math.min(timeout, lease) };
  return runRound(context, (call) => acquireOrRead(call, own, lease), { cost, cutsShort });
}

/** What a round of begins means. Hears every endpoint out where the first answers do not settle it. */
export async function classifyBegin(
  round: Round<RegisterAnswer>,
  result: RoundResult,
  fingerprint: string,
): Promise<Begin> {
  const { length: count } = round.answers;
  let found = classifyRecords(otherRecords(round), fingerprint, count);
  if (result === "granted") {
    // A quorum is ours, but a run that could not complete on one may have happened nevertheless.
    return found.kind === "replay" || (found.kind === "mismatch" && found.complete) ? found : { kind: "run" };
  }
  if (found.kind === "split" || found.kind === "corrupt" || (found.kind === "replay" && !found.decided)) {
    await round.done;
    found = classifyRecords(otherRecords(round), fingerprint, count);
  }
  // Of so few answers nobody could have had a quorum; of more, contenders may have kept it from each other.
  const answered = round.answers.filter((answer) => answer && answer.outcome !== "error").length;
  if (found.kind === "split" && round.answers.filter(isWrongType).length > count - quorumOf(count)) {
    return { kind: "corrupt" };
  }
  const unclear = result === "unavailable" && found.kind === "split" && answered < quorumOf(count);
  return unclear ? { kind: "unclear" } : found;
}

/**
 * Completes a run on one endpoint. A record that has expired untaken is completed too: the effect has happened,
 * and nobody else has begun. Another run's record is never touched.
 *
 * @param former what this run tried to store before, and may have stored here, but no quorum can have taken
 */
export async function completeOne(
  call: Call,
  own: Register,
  complete: string,
  retention: number,
  former?: string,
): Promise<RegisterAnswer> {
  const completed = await extend(call, own, retention, complete);
  if (completed.outcome === "granted") return completed;
  const taken = await acquireOrRead(call, { ...own, value: complete }, retention);
  // A begin that was held up has arrived in between.
  if (taken.other === own.value) return extend(call, own, retention, complete);
  if (former !== undefined && taken.other === former) {
    return extend(call, { ...own, value: former }, retention, complete);
  }
  return taken.outcome === "granted" ? taken : { ...taken, outcome: "lost" };
}

/** What stands at a key. */
export interface KeyInspection {
  /**
   * What a run would find. `undecided`: some endpoints have something, too few to say what it comes to; the votes
   * tell what. `corrupt`: it is no record.
   */
  readonly state: "none" | "pending" | "complete" | "corrupt" | "undecided";
  /** ms since it was begun or completed, as far as the wall clocks agree; undefined where neither is known. */
  readonly age?: number | undefined;
  /** ms until the lease or the retention ends; 0 where neither is known. */
  readonly remaining: number;
  /** SHA-256 of the fingerprint, hexadecimal; undefined where there is none. */
  readonly fingerprint?: string | undefined;
  /** Why a key that is complete has no result; undefined where it has one. */
  readonly unstored?: UnstoredReason | undefined;
  /** Runs that began and neither completed nor failed, as far as they were counted: the most of any endpoint. */
  readonly attempts: number;
  /** By endpoint. */
  readonly votes: readonly KeyVote[];
}

/** What one endpoint knows of a key. */
export interface KeyVote extends Partial<Omit<KeyInspection, "state" | "votes">> {
  readonly endpoint: string;
  readonly state: "none" | "pending" | "complete" | "corrupt" | "error";
  readonly cause?: EndpointError;
}

interface KeySnapshot extends Answer {
  /** The record, undefined where there is none, and the ms until it expires. */
  readonly text: string | undefined;
  readonly remaining: number;
  /** The count of runs, "" where there is none. */
  readonly counted: string;
}

/** Looks at a key on every endpoint, and hears all of them out. */
async function look(settings: Settings, { key, name, counter }: RecordKeys, action: string) {
  const round = runRound(settings, async (call): Promise<KeySnapshot> => {
    // Of the three keys that the script reads, it tells the first and the third.
    const reply = await runScript(call, registerScript, [name, name, counter], ["look", "", 1, 1, 0]);
    const [value, remaining, counted] = Array.isArray(reply) ? reply : [];
    if (!isSnapshot(call, value, remaining) || typeof counted !== "string") {
      throw unexpectedReply();
    }
    // -2: nothing stands there, which an empty text does not tell.
    return { outcome: "granted", text: remaining === -2 ? undefined : String(value), remaining, counted };
  });
  await round.done;
  const snapshots = round.answers.flatMap((answer) => (answer && answer.outcome !== "error" ? [answer] : []));
  const unclear = new QuorumError(action, [key], round.votes());
  if (snapshots.length < quorumOf(settings.endpoints.length)) throw unclear;
  return { round, snapshots, unclear, texts: snapshots.flatMap(({ text }) => text ?? []) };
}

/** See {@link Idempotency.inspect}. */
export async function inspect(settings: Settings, place: RecordKeys): Promise<KeyInspection> {
  const { endpoints, runtime } = settings;
  const { round, snapshots, texts } = await look(settings, place, "inspect");
  const now = runtime.now();
  const quorum = quorumOf(endpoints.length);
  const veto = endpoints.length - quorum + 1;
  const found = classifyRecords(texts, noFingerprint, endpoints.length);
  let state: KeyInspection["state"] = texts.length > 0 ? "undecided" : "none";
  let text: string | undefined;
  if (found.kind === "busy") {
    state = "pending";
    text = pendingText(found.record);
  } else if (found.kind === "replay" && found.decided) {
    state = "complete";
    text = found.text;
  } else if (texts.filter((other) => !parseRecord(other)).length >= veto) {
    state = "corrupt";
  }
  // It stands for as long as enough endpoints have it.
  const ends = snapshots.flatMap((snapshot) => (text && snapshot.text === text ? [snapshot.remaining] : []));
  const remaining = ends.sort((a, b) => b - a)[(state === "pending" ? quorum : veto) - 1] ?? 0;
  return {
    ...about(text, now),
    state,
    remaining,
    attempts: Math.max(...snapshots.map(({ counted }) => countOf(counted) ?? 0)),
    votes: round.answers.map((answer, index): KeyVote => {
      const endpoint = endpoints[index]!.name;
      if (answer?.outcome !== "granted") return { endpoint, state: "error", ...answer };
      const attempts = countOf(answer.counted) ?? 0;
      return { endpoint, ...about(answer.text, now), remaining: Math.max(0, answer.remaining), attempts };
    }),
  };
}

/** What a text tells that may be a record. */
function about(text: string | undefined, now: number) {
  const record = parseRecord(text);
  if (!record) return { state: text === undefined ? ("none" as const) : ("corrupt" as const) };
  const { state, fingerprint } = record;
  const since = state === "pending" ? record.startedAt : record.completedAt;
  return {
    state,
    age: Math.max(0, now - since),
    ...(fingerprint !== noFingerprint && { fingerprint }),
    ...(state === "complete" && record.unstored && { unstored: record.unstored }),
  };
}

/** In one step with the look at its type: a record that is written in between stays. */
async function removeWrongType(call: Call, name: string): Promise<void> {
  const source = 'return redis.call("TYPE", KEYS[1]).ok ~= "string" and redis.call("DEL", KEYS[1]) or 0';
  await send(call, ["EVAL", (call.endpoint.dialect === "upstash" ? upstashFlag : "") + source, 1, name]);
}

/** See {@link Idempotency.forget}. */
export async function forget(settings: Settings, place: RecordKeys): Promise<boolean> {
  const { key, name, counter } = place;
  const count = settings.endpoints.length;
  for (let removed = false, pass = 1; ; pass += 1) {
    const { round, snapshots, texts, unclear } = await look(settings, place, "forget");
    const found = classifyRecords(texts, noFingerprint, count);
    if (found.kind === "busy") {
      // It has begun since the removal.
      if (removed) return true;
      throw new InProgressError(key, Math.max(1_000, ...snapshots.map(({ remaining }) => remaining)));
    }
    const silent = count - snapshots.length;
    const isPending = (text: string | undefined) => parseRecord(text)?.state === "pending";
    const stays = ({ text, counted }: KeySnapshot) =>
      counted === "" && (text === undefined || isPending(text));
    const settled = snapshots.every(stays);
    if (settled && silent === 0) return removed;
    // Those that are silent may make a quorum of a run, and a copy that one of them keeps would be found again.
    const mayRun = texts.filter(isPending).length + silent >= quorumOf(count);
    if (settled || mayRun || pass > 3) throw unclear;
    const removal = runRound(settings, async (call): Promise<Answer> => {
      const snapshot = round.answers[settings.endpoints.indexOf(call.endpoint)]!;
      if (snapshot.outcome === "error") throw snapshot.cause;
      const { text, counted } = snapshot;
      // By comparison: what a run has begun or counted since stays.
      // A text that is empty may be none at all: what the script reads of a list or a hash.
      if (text === "") await removeWrongType(call, name);
      if (text !== undefined && !isPending(text)) await release(call, { keys: [name], value: text });
      if (counted) await release(call, { keys: [counter], value: counted });
      return { outcome: "granted" };
    });
    await removal.done;
    removed = true;
  }
}

/** Whether an endpoint says that what stands at the key is no string, but a list, a hash or the like. */
function isWrongType(answer: Answer | Failure | undefined): boolean {
  return answer?.outcome === "error" && answer.cause.message.includes("WRONGTYPE");
}

function otherRecords({ answers }: Round<RegisterAnswer>): string[] {
  return answers.flatMap((answer) => (answer?.outcome === "held" ? [answer.other ?? ""] : []));
}
