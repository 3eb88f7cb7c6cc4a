import { checkOptions, checkText, oneOf, type Schema, wrongType } from "../check/check.ts";
import type { Ask } from "../endpoints/ask.ts";
import type { EndpointError } from "../errors/errors.ts";
import { clientStateOf } from "../lock/client.ts";
import { lockSchema, type Settings } from "../lock/options.ts";
import { query } from "../quorum/query.ts";
import type { Round } from "../quorum/round.ts";
import { type Answer, isVeto, quorumOf } from "../quorum/tally.ts";
import { isSnapshot } from "../redis/cell.ts";
import { peekScript } from "../redis/peek.lua.ts";
import { runScript, unexpectedReply } from "../redis/script.ts";
import { checkScope, type KeyKind } from "./digest.ts";
import { type Idempotency, recordKeysOf, resolveIdempotency } from "./idempotency.ts";
import {
  classifyRecords,
  countOf,
  isPending,
  noFingerprint,
  parseRecord,
  recordText,
  type UnstoredReason,
} from "./record.ts";
import type { RecordKeys } from "./run-request.ts";

/** The state of a key. */
export interface KeyInspection {
  /** `undecided`: too few endpoints have a value. `corrupt`: the value is not a record. */
  readonly state: "none" | "pending" | "complete" | "corrupt" | "undecided";
  /** ms since the run began or completed, as far as the wall clocks agree. */
  readonly age?: number | undefined;
  /** ms until the lease or the retention ends, or 0 if neither is known. */
  readonly remaining: number;
  /** SHA-256 of the fingerprint, if any, in hexadecimal. */
  readonly fingerprint?: string | undefined;
  readonly unstored?: UnstoredReason | undefined;
  /** Runs that did not end, if they are counted: the highest count of any endpoint. */
  readonly attempts: number;
  readonly votes: readonly KeyVote[];
}

/** The state of a key at one endpoint. */
export interface KeyVote extends Partial<Omit<KeyInspection, "state" | "votes">> {
  readonly endpoint: string;
  readonly state: "none" | "pending" | "complete" | "corrupt" | "error";
  readonly cause?: EndpointError;
}

/** Options of {@link inspectKey} and `forgetKey`. */
export interface KeyOptions {
  /** `undefined` is a TypeError. Default: none. */
  readonly scope?: string | readonly string[];
  /**
   * `run`: of `run()`. `http`: of `withIdempotency()` or `idempotent()`. `flight`: of `singleFlight()`. Default `run`.
   */
  readonly kind?: KeyKind | undefined;
  /**
   * Of an `http` key: its route's option `handler`, or else the declared pattern without a slash at its end and without
   * `*`. Default: none.
   */
  readonly handler?: string | undefined;
  /** Longest time for one HTTP request, in ms. Default: as for runs. */
  readonly timeout?: number | undefined;
}

const schema: Schema<KeyOptions> = {
  scope: checkScope,
  timeout: lockSchema.timeout,
  kind: oneOf("run", "http", "flight"),
  handler: checkText,
};

export async function openKey(
  caller: string,
  idempotency: Idempotency,
  key: string,
  options: KeyOptions,
): Promise<{ readonly settings: Settings; readonly keys: RecordKeys }> {
  checkOptions(caller, options, schema);
  if (!idempotency?.redlock) throw wrongType("idempotency", idempotency, "new Idempotency(redlock)");
  const { timeout } = options;
  const { settings } = resolveIdempotency(clientStateOf(idempotency.redlock), idempotency.options, {
    timeout,
  });
  return { settings, keys: await recordKeysOf(settings, key, options) };
}

export interface KeySnapshot extends Answer {
  readonly text: string | undefined;
  readonly remaining: number;
  /** Or "". */
  readonly counted: string;
}

export interface KeyReading {
  readonly round: Round<KeySnapshot>;
  readonly snapshots: readonly KeySnapshot[];
  readonly texts: readonly string[];
}

/** @throws QuorumError when no quorum answered */
export async function readKey(
  settings: Settings,
  { key, name, counter }: RecordKeys,
  action: string,
): Promise<KeyReading> {
  const readOne = async (call: Ask): Promise<KeySnapshot> => {
    const reply = await runScript(call, peekScript, [name, counter], ["peek"]);
    const [value, remaining, counted] = Array.isArray(reply) ? reply : [];
    if (!isSnapshot(call, value, remaining) || typeof counted !== "string") {
      throw unexpectedReply();
    }
    // -2: there is no key. An empty text looks like that otherwise.
    return { outcome: "granted", text: remaining === -2 ? undefined : String(value), remaining, counted };
  };
  const round = await query(settings, [action, [key]], readOne);
  const snapshots = round.answers();
  return { round, snapshots, texts: snapshots.flatMap(({ text }) => text ?? []) };
}

/**
 * Reads the state of a key and changes nothing.
 *
 * @throws QuorumError when too few endpoints answered
 *
 * @example
 * const { state, age } = await inspectKey(idempotency, `fulfil:${event.id}`, { scope: "stripe" });
 */
export async function inspectKey(
  idempotency: Idempotency,
  key: string,
  options: KeyOptions = {},
): Promise<KeyInspection> {
  const { settings, keys } = await openKey("inspectKey", idempotency, key, options);
  const { endpoints, runtime } = settings;
  const { round, snapshots, texts } = await readKey(settings, keys, "inspect");
  const now = runtime.now();
  const { state, text } = stateOf(texts, endpoints.length);
  return {
    ...fieldsOf(text, now),
    state,
    remaining: remainingOf(snapshots, text, endpoints.length),
    attempts: Math.max(...snapshots.map(({ counted }) => countOf(counted) ?? 0)),
    votes: round.calls.map(({ answer, endpoint: { name: endpoint } }): KeyVote => {
      if (!answer || answer.outcome === "error") {
        return { endpoint, state: "error", ...(answer && { cause: answer.cause }) };
      }
      const attempts = countOf(answer.counted) ?? 0;
      const remaining = Math.max(0, answer.remaining);
      return { endpoint, ...fieldsOf(answer.text, now), remaining, attempts };
    }),
  };
}

function stateOf(
  texts: readonly string[],
  count: number,
): { readonly state: KeyInspection["state"]; readonly text?: string } {
  const found = classifyRecords(texts, noFingerprint, count);
  if (found.kind === "busy") return { state: "pending", text: recordText(found.record) };
  if (found.kind === "replay" && found.decided) return { state: "complete", text: found.text };
  if (isVeto(texts.filter((text) => !parseRecord(text)).length, count)) return { state: "corrupt" };
  return { state: texts.length > 0 ? "undecided" : "none" };
}

/** ms for which a pending record has a quorum, or another text prevents one. */
function remainingOf(snapshots: readonly KeySnapshot[], text: string | undefined, count: number): number {
  if (text === undefined) return 0;
  const ends = snapshots.flatMap((snapshot) => (snapshot.text === text ? [snapshot.remaining] : []));
  const enough = isPending(text) ? quorumOf(count) : count - quorumOf(count) + 1;
  return ends.sort((a, b) => b - a)[enough - 1] ?? 0;
}

function fieldsOf(
  text: string | undefined,
  now: number,
): Pick<KeyVote, "age" | "fingerprint" | "unstored"> & { state: Exclude<KeyVote["state"], "error"> } {
  const record = parseRecord(text);
  if (!record) return { state: text === undefined ? "none" : "corrupt" };
  const { state, at, fingerprint, unstored } = record;
  return {
    state,
    age: Math.max(0, now - at),
    ...(fingerprint !== noFingerprint && { fingerprint }),
    ...(unstored && { unstored }),
  };
}
