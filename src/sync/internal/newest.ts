import { unlessAborted } from "../../abort.ts";
import type { EndpointRequest } from "../../endpoints/endpoint-request.ts";
import { QuorumError } from "../../errors.ts";
import type { Settings } from "../../lock/options.ts";
import { retry } from "../../quorum/retry.ts";
import { rollback } from "../../quorum/rollback.ts";
import { type Failure, isHopeless, type Round, runRound } from "../../quorum/round.ts";
import { type CellAnswer, end } from "../../redis/cell.ts";
import { runScript, unexpectedReply } from "../../redis/script.ts";
import { type Runtime, randomToken, runInBackground } from "../../runtime.ts";
import { debounceScript } from "../debounce.lua.ts";
import { itemsOf } from "./reply.ts";

// The newest call of a name: a key at which the greatest text stays.

/** The calls of one name, of which the newest counts. */
export interface NewestContext {
  readonly settings: Settings;
  /** The function's name, for errors. */
  readonly caller: string;
  readonly name: string;
  readonly key: string;
  /** How long the announcement is kept, in ms. */
  readonly ttl: number;
  readonly signal: AbortSignal | undefined;
}

/** A call as it is announced. */
export interface Announcement {
  /** What is stored in Redis: see {@link textOf}. */
  text: string;
  /** The round that announced it last. */
  round?: Round<CellAnswer>;
}

/** A new call, with the time of the clock as its sequence number. */
export function newAnnouncement(runtime: Runtime): Announcement {
  return { text: textOf(Math.floor(runtime.now()), randomToken(runtime)) };
}

/** Announces a call as later than all that a quorum has; resolves with the round that did. */
export async function announceNewest(
  context: NewestContext,
  own: Announcement,
  remainingMs: () => number,
): Promise<Round<CellAnswer>> {
  const token = tokenOf(own.text);
  let announced = await announce(context, own, remainingMs());
  while (!announced.isLast) {
    // A later sequence number is of an earlier call, whatever the clocks say: it was there before this one.
    own.text = textOf(latestSequence(announced.round) + 1, token);
    announced = await announce(context, own, remainingMs());
  }
  return announced.round;
}

/** Removes an announcement; the call before it is not restored. */
export async function withdraw({ settings, key, signal }: NewestContext, own: Announcement): Promise<void> {
  const { text: value, round } = own;
  // It was aborted before it was announced.
  if (!round) return;
  const rolledBack = rollback(settings, round, (call) => end(call, { keys: [key], value })).done;
  if (!runInBackground(settings, rolledBack) && !signal?.aborted) await rolledBack;
}

/** Announces a call until a quorum has answered whether it is the last, for `wait` ms at most. */
export function announce(
  { settings, caller, name, key, ttl, signal }: NewestContext,
  own: Announcement,
  wait: number,
): Promise<{ readonly isLast: boolean; readonly round: Round<CellAnswer> }> {
  const { text } = own;
  return retry({ ...settings, signal, wait }, async () => {
    const round = runRound(settings, (call) => announceOne(call, key, text, ttl));
    own.round = round;
    const result = await unlessAborted(round.result, signal);
    if (!result) throw signal?.reason;
    if (result !== "unavailable") return { value: { isLast: result === "granted", round } };
    return {
      mayRetry: !isHopeless(round.votes()),
      end() {
        throw new QuorumError(caller, [name], round.votes());
      },
    };
  });
}

async function announceOne(
  call: EndpointRequest,
  key: string,
  text: string,
  ttl: number,
): Promise<CellAnswer> {
  const reply = await runScript(call, debounceScript, [key], [text, ttl]);
  const [echo, other] = itemsOf(reply);
  if (echo === text) return { outcome: "granted" };
  if (echo === 0 && sequenceIn(other)) return { outcome: "held", other: String(other) };
  throw unexpectedReply();
}

/** The token of the newest call that an endpoint of a round has in place of this one. */
export function newerToken({ answers }: Round<CellAnswer>): string {
  const others = answers.map((answer) => (answer && "other" in answer && answer.other) || "");
  return tokenOf(others.sort().pop()!);
}

/** The greatest sequence number that an endpoint returned; 0 where none did. */
function latestSequence({ answers }: Round<CellAnswer>): number {
  const sequenceOf = (answer: CellAnswer | Failure | undefined) =>
    answer && "other" in answer ? sequenceIn(answer.other) : 0;
  return Math.max(...answers.map(sequenceOf));
}

/** The token of a call, which names it. */
export function tokenOf(text: string): string {
  return text.slice(17);
}

/** A call as it is stored in Redis. The later one is the greater text; the token decides where the sequence is equal. */
function textOf(sequence: number, token: string): string {
  return `d${String(sequence).padStart(16, "0")}${token}`;
}

/** The sequence number of a call, or of what replaces one after a `forceRelease`; 0 where it is neither. */
function sequenceIn(text: unknown): number {
  // Stryker disable next-line OptionalChaining: what it throws then is a malformed reply, as 0 is
  const sequence = Number(/^d(\d{16})[tu][0-9a-f]{32}$/.exec(String(text))?.[1] ?? 0);
  return sequence < Number.MAX_SAFE_INTEGER ? sequence : 0;
}
