import type { Ask } from "../endpoints/ask.ts";
import type { RedlockError, Vote } from "../errors/errors.ts";
import { fenced } from "../lock/fence.ts";
import { parseHolder } from "../lock/note.ts";
import { type Decision, type Protocol, withoutTombstone } from "../lock/protocol.ts";
import { validityOf } from "../lock/validity.ts";
import type { Next } from "../quorum/retry.ts";
import { type Call, type Round, runRound } from "../quorum/round.ts";
import type { Answer } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, claimOrRead, end, keep } from "../redis/cell.ts";
import { type CountedRun, countRun } from "./attempts.ts";
import { type BeginState, recordFound, stateOfBegin } from "./begin.ts";
import { Completion } from "./completion.ts";
import { DeadKeyError, FingerprintMismatchError, LeaseLostError, RecordCorruptError } from "./errors.ts";
import { isComplete, type RunRecord, recordText } from "./record.ts";
import type { StoredResult } from "./result.ts";
import { type RunRequest, remainingRetention, settleTimeout } from "./run-request.ts";

type Replay<Value> = Extract<BeginState, { kind: "replay" }> & {
  readonly value?: Value | undefined;
};

export type RunState<Value> =
  | Exclude<BeginState, { kind: "replay" | "mismatch" | "corrupt" }>
  | Replay<Value>
  /** Complete, but too old to be returned. `isRemoved`: by this call, from a quorum. */
  | { readonly kind: "stale"; readonly isRemoved: boolean; readonly votes: readonly Vote[] };

/** A run is a lock whose cell has one more key, the record. The release puts the result in the record's place. */
export class RunProtocol<Value> implements Protocol<CellAnswer> {
  /** A lost record is written again when the run completes. */
  readonly isRestorable = false;
  readonly action: string;
  state: RunState<Value> = { kind: "unclear" };
  readonly #request: RunRequest<Value>;
  readonly #locks: Protocol | undefined;
  /** An earlier round's undo may go on while a later round counts. */
  readonly #counts = new Map<Cell, CountedRun>();
  #startedAt = 0;
  /** Of the last round. */
  #cell: Cell | undefined;
  /** Of the claim under which the handler runs. */
  #held: Cell | undefined;
  #completion: Completion | undefined;

  constructor(request: RunRequest<Value>) {
    const { settings, key, lock, note } = request;
    this.#request = request;
    this.#locks = lock && fenced(settings, lock, note);
    this.action = lock ? `begin ${JSON.stringify(key)} with` : "begin";
  }

  get fence(): number | undefined {
    return this.#locks?.fence;
  }

  cell(nonce: string): Cell {
    const { settings, name, fingerprint } = this.#request;
    const locks: Cell = this.#locks?.cell(nonce) ?? { keys: [], value: nonce };
    this.#startedAt = Math.floor(settings.runtime.now());
    const record = recordText({ state: "pending", token: nonce, at: this.#startedAt, fingerprint });
    const values = [record, ...locks.keys.map(() => locks.value)];
    this.#cell = { ...locks, keys: [name, ...locks.keys], values };
    return this.#cell;
  }

  claim(call: Call, cell: Cell, ttl: number): Promise<CellAnswer> {
    const lease = this.#leaseOf(ttl);
    return this.#locks?.claim(call, cell, lease) ?? claimOrRead(call, cell, lease);
  }

  extend(call: Call, cell: Cell, ttl: number): Promise<Answer> {
    const lease = this.#leaseOf(ttl);
    return this.#locks?.extend(call, cell, lease) ?? keep(call, cell, lease);
  }

  /**
   * Refuses the claim if even a minority has another run's result. Counts the attempt after the claim, so that
   * contenders do not count, and before the handler, so that each of its crashes does.
   */
  async confirm(granted: Round<CellAnswer>, cell: Cell, ttl: number): Promise<Decision | undefined> {
    const { key, settings, maxAttempts } = this.#request;
    await this.#look(granted);
    if (this.state.kind !== "run")
      return { result: Promise.resolve("refused"), votes: () => granted.votes() };
    const raised = await this.#locks?.confirm?.(granted, cell, ttl);
    const within = validityOf(settings, ttl) - granted.elapsed();
    // Lost between the two rounds.
    const isLost = raised && (await raised.result) !== "granted";
    if (isLost || within <= 0 || maxAttempts === Infinity) return raised;
    const counted = await countRun(this.#request, parseHolder(cell.value).nonce, within);
    this.#counts.set(cell, counted);
    if (counted.dead !== undefined) throw new DeadKeyError(key, counted.dead);
    return counted;
  }

  async next(failed: Round<CellAnswer>): Promise<Next> {
    // `confirm` has looked.
    if ((await failed.result) !== "granted") await this.#look(failed);
    const { state } = this;
    if (state.kind === "replay") return "end";
    if (state.kind === "stale" && state.isRemoved) return "at-once";
    // Even without `wait`, because contenders with a part each are giving it back.
    const isSettling = state.kind === "split-vote" || state.kind === "stale";
    return isSettling ? { within: settleTimeout(this.#request.settings) } : "pause";
  }

  /** A complete record takes the claim's place. */
  async release(call: Call, cell: Cell, claim: Call): Promise<Answer> {
    const { name, retention } = this.#request;
    const isHeld = cell === this.#held;
    const completion = isHeld ? this.#completion : undefined;
    if (completion) {
      const { text, former } = completion;
      const next = { text, retention, former };
      return completion.storeOne(call.endpoint, () => this.#complete(call, { cell, claim }, next));
    }
    // First, because a run that finds the key free must not count this one.
    await this.#counts.get(cell)?.takeBack(isHeld);
    const { state } = this;
    if (state.kind !== "replay")
      return claim.hasDoneNothing ? { outcome: "lost" } : this.#end(call, { cell, claim });
    const replaced = { text: state.text, retention: remainingRetention(this.#request, state.record) };
    if (!claim.hasDoneNothing) return this.#end(call, { cell, claim }, replaced);
    const found = recordFound(claim as Call<CellAnswer>);
    if (found === undefined || found === state.text || !isComplete(found)) return { outcome: "lost" };
    return keep(call, { keys: [name], value: cell.value, values: [found] }, replaced.retention, state.text);
  }

  lostError(why: string): RedlockError {
    // The options call it the lease.
    return new LeaseLostError(this.#request.key, why.replace("(ttl ", "(lease "));
  }

  /** The release of this claim now ends the run. */
  handlerBegins(): void {
    this.#held = this.#cell;
  }

  /** The release now stores this result. */
  complete({ result, unstored }: StoredResult<Value>): Completion {
    const { settings, fingerprint } = this.#request;
    const at = Math.max(Math.floor(settings.runtime.now()), this.#startedAt);
    const { nonce: token } = parseHolder(this.#cell!.value);
    const record: RunRecord = { state: "complete", token, at, fingerprint, result, unstored };
    this.#completion = new Completion(this.#request, record);
    return this.#completion;
  }

  /** One timeout longer than the deadline, for storing the result, in whole ms. */
  #leaseOf(ttl: number): number {
    const { settings, deadline } = this.#request;
    return deadline === Infinity ? ttl : Math.min(settings.ttl, ttl + Math.ceil(settings.timeout));
  }

  async #look(round: Round<CellAnswer>): Promise<void> {
    const { key, fingerprint } = this.#request;
    this.state = { kind: "unclear" };
    const found = await stateOfBegin(round, { fingerprint, isAlone: !this.#locks });
    if (found.kind === "mismatch") throw new FingerprintMismatchError(key);
    if (found.kind === "corrupt") throw new RecordCorruptError(key);
    this.state = found.kind === "replay" ? await this.#replay(round, found) : found;
  }

  async #replay(round: Round<CellAnswer>, found: Replay<Value>): Promise<RunState<Value>> {
    const { key, codec, isStale } = this.#request;
    const { record, text, decided } = found;
    if (isStale?.(record)) return this.#remove(text);
    let value: Value | undefined;
    try {
      // First, because an unreadable result must not spread to more endpoints.
      if (record.result !== undefined) value = codec.decode(record.result);
    } catch (cause) {
      throw new RecordCorruptError(key, { cause });
    }
    // Until a quorum has it, another run could store a different result.
    const isDecided = decided || (await this.#bringToQuorum(round, found));
    return isDecided ? { ...found, value } : { kind: "split-vote" };
  }

  /** Compares, so that anything newer stays. */
  async #remove(text: string): Promise<RunState<Value>> {
    const { settings, name } = this.#request;
    const removal = runRound(settings, (call) => end(call, { keys: [name], value: text }));
    await removal.mostlyDone();
    return { kind: "stale", isRemoved: (await removal.result) === "granted", votes: removal.votes() };
  }

  async #bringToQuorum(begins: Round<CellAnswer>, { record, text }: Replay<Value>): Promise<boolean> {
    const retention = remainingRetention(this.#request, record);
    const cell = this.#cell!;
    const round = runRound(this.#request.settings, (call, index) =>
      this.#complete(call, { cell, claim: begins.calls[index]! }, { text, retention }),
    );
    return (await round.result) === "granted";
  }

  /** Replaces an expired pending record too, because the effect has happened, but never another run's record. */
  async #complete(call: Ask, claimed: Claimed, next: Replacement): Promise<CellAnswer> {
    const { name } = this.#request;
    const { text, retention, former } = next;
    const completed = await this.#end(call, claimed, next);
    if (completed.outcome === "granted") return completed;
    // The record is sent once, and its token echoed.
    const { value } = claimed.cell;
    const taken = await claimOrRead(call, { keys: [name], value, values: [text] }, retention);
    // A late begin of this run was executed between the two requests.
    if (taken.other === claimed.cell.values![0]) return this.#end(call, claimed, next);
    if (former === undefined || taken.other !== former) return taken;
    return keep(call, { keys: [name], value, values: [former] }, retention, text);
  }

  /** A tombstone refuses a claim that may still be executed, because it would hold the locks for nobody. */
  async #end(call: Ask, { cell, claim }: Claimed, next?: Replacement): Promise<CellAnswer> {
    const target = claim.isOver ? withoutTombstone(cell) : cell;
    const answer = await end(call, target, next && { values: [next.text], ttl: next.retention });
    // An expired lock is free too.
    return answer.blockedBy === undefined ? answer : { outcome: "granted" };
  }
}

interface Claimed {
  readonly cell: Cell;
  readonly claim: Call;
}

interface Replacement {
  readonly text: string;
  readonly retention: number;
  readonly former?: string | undefined;
}
