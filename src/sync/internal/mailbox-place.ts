import type { Ask } from "../../endpoints/ask.ts";
import type { Settings } from "../../lock/options.ts";
import { tombstoneOf } from "../../lock/protocol.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { type CellAnswer, readCounter, tombstoneRetention } from "../../redis/cell.ts";
import { keyOf } from "../../redis/keys.ts";
import { foreignData, runScript, unexpectedReply } from "../../redis/script.ts";
import { randomToken } from "../../runtime/runtime.ts";
import { mailboxScript } from "./mailbox.lua.ts";
import { itemsOf } from "./reply.ts";

// One mailbox at one endpoint, and what the answers of a round show together.

/** A message as it waits at an endpoint. */
export interface Entry {
  readonly id: string;
  /** Orders it: ms since 1970, or more where others have had that already. */
  readonly stamp: number;
  /** The call of `post` that it comes from. Empty: several. */
  readonly call: string;
  /** How often it has failed, as far as the endpoint knows. */
  readonly failures: number;
  /** Its value as JSON. */
  readonly json: string;
}

/** The arguments of a `post`. */
export interface Posted {
  /** The stamp of the turn, which is its fence. */
  readonly stamp: number;
  /** Its stamp: 0 if it is that of the turn. */
  readonly message?: Omit<Entry, "failures"> | undefined;
  /** The id of a message that it drops. */
  readonly drops?: string | undefined;
}

/** The arguments of a step. */
export interface Step {
  /** 1, 2, …: a late step must not undo a later one. */
  readonly number: number;
  readonly closes: boolean;
  readonly done: readonly string[];
  /** Those that too few endpoints have. */
  readonly puts: readonly Entry[];
  /** Those that have failed in this turn, and do not keep it from closing: first the new ones. */
  readonly left: readonly string[];
  /** How many of them are new. */
  readonly failed: number;
}

/** The answer of an endpoint. */
export interface MailboxAnswer extends CellAnswer {
  readonly state: "stored" | "late" | "handled" | "full" | "open" | "closed" | "lost";
  /** Who has the turn. */
  readonly holder?: string;
  /** The largest stamp that is there, if that of the request is too small. */
  readonly last?: number;
  /** The oldest message of a full mailbox. */
  readonly oldest?: string;
  /** Of the ids that were put: those that have been handled. */
  readonly handled?: readonly string[];
  /** Those that wait, for the holder. */
  readonly entries: readonly Entry[];
}

/** The rules of a mailbox that its endpoints apply. */
export interface PlaceRules {
  readonly retention: number;
  readonly maxSize: number;
}

/** The requests to one endpoint. */
export class Place {
  readonly #settings: Settings;
  readonly #name: string;
  readonly #rules: PlaceRules;

  constructor(settings: Settings, name: string, rules: PlaceRules) {
    this.#settings = settings;
    this.#name = name;
    this.#rules = rules;
  }

  /** Takes the turn if it is free, and leaves a message. */
  async post(call: Ask, token: string, ttl: number, posted: Posted): Promise<MailboxAnswer> {
    const { message, stamp, drops } = posted;
    const parts = message ? [`i${message.id}`, message.call, `v${message.json}`] : [];
    const ids = [...(message ? [message.id] : []), ...(drops === undefined ? [] : [drops])];
    const args = [stamp, message?.stamp ?? 0, this.#rules.maxSize, ...parts];
    if (drops !== undefined) args.push(`i${drops}`);
    const [state, first = "", flat] = await this.#run(call, { op: "post", token, ttl, ids }, args);
    if (state === "handled") return { outcome: "held", state, entries: [] };
    if (state === "late") return { outcome: "held", state, last: wholeOf(first), entries: [] };
    if (typeof first !== "string") throw unexpectedReply();
    if (state === "full") return { outcome: "held", state, oldest: first.slice(1), entries: [] };
    if (state !== "stored") throw unexpectedReply();
    const outcome = first === token ? "granted" : "held";
    return { outcome, state, holder: first, entries: entriesOf(flat) };
  }

  /** A step of the holder. `granted`: it closes and has closed, or it does not close and has the turn. */
  async step(call: Ask, token: string, step: Step): Promise<MailboxAnswer> {
    const { number, closes, done, puts, left, failed } = step;
    const ids = [...done, ...puts.map(({ id }) => id)];
    const args: (string | number)[] = [number, Number(closes), done.length, puts.length, left.length, failed];
    args.push(...[...ids, ...left].map((id) => `i${id}`));
    for (const { stamp, call: from, json } of puts) args.push(stamp, from, `v${json}`);
    const [state, handled, flat] = await this.#run(call, { op: "step", token, ttl: 0, ids }, args);
    if (state === "stale") throw new Error("it was executed after a later step");
    if (state === "lost") return { outcome: "lost", state, entries: [] };
    if (state !== "open" && state !== "closed") throw unexpectedReply();
    const outcome = (state === "closed") === closes ? "granted" : "held";
    if (state === "closed") return { outcome, state, entries: [] };
    return {
      outcome,
      state,
      handled: itemsOf(handled).map((id) => String(id).slice(1)),
      entries: entriesOf(flat),
    };
  }

  /** How many messages wait, and who has the turn. */
  async look(call: Ask): Promise<MailboxAnswer & { readonly size: number }> {
    const token = randomToken(this.#settings.runtime);
    const [state, holder, size] = await this.#run(call, { op: "look", token, ttl: 0, ids: [] }, []);
    if (state !== "seen" || typeof holder !== "string") throw unexpectedReply();
    return { outcome: "granted", state: "open", holder, size: wholeOf(size), entries: [] };
  }

  /** Gives the turn a new ttl; with ttl 0 it only looks. */
  keep(call: Ask, token: string, ttl: number): Promise<MailboxAnswer> {
    return this.#change(call, "keep", token, { ttl, ids: [] });
  }

  /** Gives the turn back, and remembers that these are handled. */
  end(call: Ask, token: string, ids: readonly string[]): Promise<MailboxAnswer> {
    return this.#change(call, "end", token, { ttl: 0, ids });
  }

  async #change(
    call: Ask,
    op: "keep" | "end",
    token: string,
    { ttl, ids }: { readonly ttl: number; readonly ids: readonly string[] },
  ): Promise<MailboxAnswer> {
    const [state] = await this.#run(
      call,
      { op, token, ttl, ids },
      ids.map((id) => `i${id}`),
    );
    if (state !== "open" && state !== "lost") throw unexpectedReply();
    return { outcome: state === "open" ? "granted" : "lost", state, entries: [] };
  }

  async #run(
    call: Ask,
    { op, token, ttl, ids }: { op: string; token: string; ttl: number; ids: readonly string[] },
    args: readonly (string | number)[],
  ): Promise<readonly unknown[]> {
    const { prefix } = this.#settings;
    const key = (kind: string) => keyOf(prefix, kind, this.#name);
    // Without a colon, so that a key can be taken apart.
    const marks = ids.map((id) => `${key("mailbox-done")}:${encodeURIComponent(id)}`);
    const tombstone = tombstoneOf(prefix, [this.#name], token);
    const keys = [key("mailbox"), key("mailbox-order"), key("mailbox-values"), tombstone, ...marks];
    const head = [op, token, ttl, this.#rules.retention, tombstoneRetention];
    const [echo, ...reply] = itemsOf(await runScript(call, mailboxScript, keys, [...head, ...args]));
    if (echo !== token) throw unexpectedReply();
    if (reply[0] === "foreign") throw new Error(foreignData([keys[0]]));
    return reply;
  }
}

/** A number of a script's reply, which a client in between may have parsed. */
function wholeOf(word: unknown): number {
  const count = word === 0 || word === "0" ? 0 : readCounter(word);
  if (count === undefined) throw unexpectedReply();
  return count;
}

/** The answers that name one holder, if a quorum of endpoints does. */
export function agreeing<A extends Pick<MailboxAnswer, "holder">>(
  answers: readonly A[],
  quorum: number,
): readonly A[] | undefined {
  const named = answers.filter(({ holder }) => holder);
  const groups = named.map(({ holder }) => named.filter((other) => other.holder === holder));
  return groups.find(({ length }) => length >= quorum);
}

function entriesOf(flat: unknown): Entry[] {
  const words = itemsOf(flat);
  const entries: Entry[] = [];
  for (let at = 0; at < words.length; at += 5) {
    const [id, stamp, call, failures, value] = words.slice(at, at + 5);
    if (typeof id !== "string" || typeof value !== "string") throw unexpectedReply();
    const counts = { stamp: wholeOf(stamp), failures: wholeOf(failures) };
    entries.push({ id: id.slice(1), ...counts, call: String(call), json: value.slice(1) });
  }
  return entries;
}

/** The messages that a round has shown to the holder. */
export interface View {
  /** In order: those that a quorum has. */
  readonly ready: readonly Entry[];
  /** Those that fewer have: from a post that was not acknowledged, or that was handled already. */
  readonly strays: readonly Entry[];
}

/**
 * What a round has shown. A message that a quorum has in one round was not handled: a quorum remembers what was. And if one was
 * acknowledged before the post of another began, both are in the same view, so the order within the view is enough.
 *
 * An endpoint that does not show all may have what it does not show: what comes after that is left to a later view.
 *
 * @param puts what the round has put: an endpoint has it that does not know it as handled, whether it shows it or not
 */
export function viewOf(
  answers: readonly MailboxAnswer[],
  endpoints: number,
  puts: readonly Entry[] = [],
): View {
  const quorum = quorumOf(endpoints);
  const byId = new Map<string, Entry[]>();
  for (const { entries, handled = [] } of answers) {
    const isPut = ({ id }: Entry) => !handled.includes(id) && !entries.some((entry) => entry.id === id);
    for (const entry of [...entries, ...puts.filter(isPut)]) {
      byId.set(entry.id, [...(byId.get(entry.id) ?? []), entry]);
    }
  }
  const horizon = Math.min(...answers.map(horizonOf));
  const all = [...byId.values()].map((copies) => ({ count: copies.length, entry: entryOf(copies, quorum) }));
  all.sort(({ entry: a }, { entry: b }) => a.stamp - b.stamp || (a.id < b.id ? -1 : 1));
  const before = all.filter(({ entry }) => entry.stamp < horizon);
  const shown = before.length > 0 ? before : all;
  const isReady = ({ count }: { readonly count: number }) => count >= quorum;
  const entries = (isOf: (one: { readonly count: number }) => boolean) =>
    shown.filter(isOf).map(({ entry }) => entry);
  return { ready: entries(isReady), strays: entries((one) => !isReady(one)) };
}

/** The stamp from which on an endpoint may have more than it shows: see `look` of the script. Infinity: it shows all. */
function horizonOf({ entries }: MailboxAnswer): number {
  // No character has more than three bytes.
  const bytes = entries.reduce((sum, { json }) => sum + 3 * json.length, 0);
  return entries.length < 32 && bytes < 5e5 ? Infinity : entries.at(-1)!.stamp;
}

/**
 * One message, of its copies at several endpoints. The latest attempt of a call may be the one that was acknowledged; of
 * several calls with the same id the first one orders it. It has failed as often as a quorum says.
 */
function entryOf(copies: readonly Entry[], quorum: number): Entry {
  const latest = new Map<string, Entry>();
  for (const copy of copies) {
    // Of several calls nobody knows which one has stamped it.
    const from = copy.call || `at ${copy.stamp}`;
    const known = latest.get(from);
    if (!known || copy.stamp > known.stamp) latest.set(from, copy);
  }
  const [first] = [...latest.values()].sort((a, b) => a.stamp - b.stamp);
  const counts = copies.map(({ failures }) => failures).sort((a, b) => b - a);
  return { ...first!, failures: counts[quorum - 1] ?? 0 };
}
