import type { Endpoint } from "../../endpoints/endpoint.ts";
import type { Settings } from "../../lock/options.ts";
import { announce, type Protocol } from "../../lock/protocol.ts";
import type { Waiter } from "../../lock/wake-up.ts";
import type { Next } from "../../quorum/retry.ts";
import type { Call, Round } from "../../quorum/round.ts";
import { quorumOf } from "../../quorum/tally.ts";
import type { Cell } from "../../redis/cell.ts";
import {
  agreeing,
  type Entry,
  type MailboxAnswer,
  type Place,
  type Step,
  type View,
  viewOf,
} from "./mailbox-place.ts";

/** Kind of the messages that wake those that stand by. */
export const mailboxWaiter = "mailbox";

/** How often a call tries again at once because its stamp is too small. Where many post at once, others overtake it again. */
const mostHurries = 3;

/** The last stamp that a client has given in a mailbox, in ms since 1970. */
export interface Clock {
  stamp: number;
}

/** The message of a call. */
export interface PostedMessage extends Pick<Entry, "id" | "call" | "json"> {
  /** Its stamp, once a quorum has it: it keeps its place in order, also if the call takes another turn. */
  position: number | undefined;
  /** Called when a quorum has it, with the token of its holder. */
  readonly onStored: () => void;
}

/** What a call posts. */
export interface PostRules {
  readonly message: PostedMessage | undefined;
  /** Whether the call waits on once its message is queued. */
  readonly standBy: boolean;
  /** Whether the oldest message makes room for it where the mailbox is full. */
  readonly dropsOldest: boolean;
  /** Ids that the call has handled, and that no quorum has been told of. Whatever ends a turn tells it. */
  readonly done: ReadonlySet<string>;
  /** The tokens of the call: one that is being undone holds no turn. */
  readonly tokens: Set<string>;
  readonly clock: Clock;
}

/** Why no turn is needed. */
export type PostState = "open" | "queued" | "duplicate" | "full";

/** Takes the turn, or leaves the message with its holder: then the call ends, and `state` says so. */
export class PostProtocol implements Protocol<MailboxAnswer> {
  readonly isRestorable = false;
  // The message of every release calls all of them: each asks for its own message.
  readonly waiter: Waiter = { kind: mailboxWaiter, name: "free" };
  readonly heldText = ": another call has its turn, and no quorum has the message";
  state: PostState = "open";
  /** Whether its message has joined the queue of another call. */
  wasQueued = false;
  /** The turn that a quorum has let go, and the step by which it did. */
  closed: { readonly token: string; readonly round: Round<MailboxAnswer> } | undefined;
  readonly #settings: Settings;
  readonly #name: string;
  readonly #place: Place;
  readonly #rules: PostRules;
  #stamp = 0;
  #drops: string | undefined;
  #round: Round<MailboxAnswer> | undefined;
  #hurries = 0;
  /** Endpoints that may have let the turn go: a close was sent there, and no answer has shown that the turn is still held. */
  readonly #mayHaveClosed = new Set<Endpoint>();

  constructor(settings: Settings, name: string, place: Place, rules: PostRules) {
    this.#settings = settings;
    this.#name = name;
    this.#place = place;
    this.#rules = rules;
  }

  /** The stamp of the turn: larger than that of every earlier one. */
  get fence(): number {
    return this.#stamp;
  }

  /** What the round has shown that took the turn. */
  get view(): View {
    const granted = this.#round?.answers().filter(({ outcome }) => outcome === "granted") ?? [];
    return viewOf(granted, this.#settings.endpoints.length);
  }

  cell(nonce: string): Cell {
    this.#rules.tokens.add(nonce);
    const { clock } = this.#rules;
    clock.stamp = Math.max(clock.stamp + 1, Math.floor(this.#settings.runtime.now()));
    this.#stamp = clock.stamp;
    return { keys: [nonce], value: nonce };
  }

  claim(call: Call, { value }: Cell, ttl: number): Promise<MailboxAnswer> {
    const { message } = this.#rules;
    const stamp = this.#stamp;
    const posted = message && { ...message, stamp: message.position ?? 0 };
    return this.#place.post(call, value, ttl, { stamp, message: posted, drops: this.#drops });
  }

  /** Keeps what it shows: each endpoint of a quorum has a smaller stamp of every earlier turn, so there is nothing to confirm. */
  confirm(granted: Round<MailboxAnswer>): undefined {
    this.#round = granted;
    this.#keepPosition();
  }

  async extend(call: Call, { value }: Cell, ttl: number): Promise<MailboxAnswer> {
    const answer = await this.#place.keep(call, value, ttl);
    // An endpoint that has closed, or closes late, does not keep what it has extended, so it must not vote.
    if (this.#mayHaveClosed.has(call.endpoint)) throw new Error("it may have let the turn go since");
    return answer;
  }

  /** The holder's next step at one endpoint. */
  async step(call: Call, token: string, step: Step): Promise<MailboxAnswer> {
    if (step.closes) this.#mayHaveClosed.add(call.endpoint);
    const answer = await this.#place.step(call, token, step);
    if (answer.state === "open") this.#mayHaveClosed.delete(call.endpoint);
    return answer;
  }

  async release(call: Call, { value }: Cell, claim: Call, isAnnounced: boolean): Promise<MailboxAnswer> {
    const { token, round } = this.closed ?? {};
    // An earlier round's claim may be undone later than that.
    const closed =
      token === value ? round?.calls.find(({ endpoint }) => endpoint === call.endpoint) : undefined;
    await closed?.settled;
    if (closed?.answer?.outcome === "granted") return closed.answer;
    const { done, message } = this.#rules;
    const ids = [...done, ...(message && this.state === "duplicate" ? [message.id] : [])];
    if (claim.hasDoneNothing && ids.length === 0) return { outcome: "lost", state: "lost", entries: [] };
    const ended = this.#place.end(call, value, ids);
    if (isAnnounced) announce(this.#settings, call, mailboxWaiter, [this.#name]);
    return ended;
  }

  next(failed: Round<MailboxAnswer>): Next {
    const { message, standBy, dropsOldest, tokens, clock } = this.#rules;
    const answers = failed.answers();
    const quorum = quorumOf(failed.calls.length);
    this.#drops = undefined;
    clock.stamp = Math.max(clock.stamp, ...answers.map(({ last = 0 }) => last));
    if (answers.some(({ state }) => state === "handled")) return this.#end("duplicate");
    const full = answers.filter(({ state }) => state === "full");
    if (full.length >= quorum) {
      if (!dropsOldest) return this.#end("full");
      this.#drops = full.map(({ oldest }) => oldest!).sort((a, b) => count(full, b) - count(full, a))[0];
      return "at-once";
    }
    const stored = answers.filter(({ state, holder }) => state === "stored" && !tokens.has(holder ?? ""));
    if (!agreeing(stored, quorum)) {
      // Others have had its stamp already, or a larger one.
      if (answers.every(({ state }) => state !== "late") || this.#hurries === mostHurries) return "pause";
      this.#hurries += 1;
      return "at-once";
    }
    this.wasQueued = true;
    this.#keepPosition();
    message?.onStored();
    return message && standBy ? "pause" : this.#end("queued");
  }

  #keepPosition(): void {
    const { message } = this.#rules;
    if (message) message.position ??= this.#stamp;
  }

  #end(state: PostState): "end" {
    this.state = state;
    return "end";
  }
}

function count(full: readonly MailboxAnswer[], id: string | undefined): number {
  return full.filter(({ oldest }) => oldest === id).length;
}
