import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Outcome, TimelineEvent } from "../../../playground/picture/timeline.ts";
import type { Observation } from "../rest/observe.ts";
import type { Clients, Sender } from "./clients.ts";
import { labelOf } from "./key.ts";
import { commandsOf, outcomeOf, type RequestWords, wordsOf } from "./request.ts";
import type { RequestRow } from "./state.ts";
import type { SeenValue } from "./stored.ts";

// Makes events of the picture and rows of the page from what happens to requests. No I/O, no clock.

/** A request, from its arrival to its end. */
interface Exchange {
  readonly id: string;
  readonly endpoint: string;
  readonly at: number;
  readonly connection: string;
  readonly agent: string;
  readonly words: RequestWords;
  /** Whether the picture shows it. */
  readonly drawn: boolean;
  client: string | undefined;
  executions: number;
  outcome: Outcome | undefined;
  error: string | undefined;
  billed: number;
  ended: { readonly at: number; readonly status: number | undefined } | undefined;
}

/** An event whose client is not known yet. */
type Draft = TimelineEvent & { readonly exchange?: Exchange; readonly token?: string | undefined };

/** Requests that are kept: more than the page lists, for its search. */
const mostRows = 200;
/** Requests in the picture between two flushes: it stays readable, and the page fast. */
const mostDrawn = 25;
/** Requests under way that are followed. */
const mostOpen = 500;

export class Recording {
  readonly #clients: Clients;
  readonly #open = new Map<string, Exchange>();
  #fresh: Exchange[] = [];
  #drafts: Draft[] = [];
  #latest: Exchange[] = [];
  #drawn = 0;
  #undrawn = 0;

  constructor(clients: Clients) {
    this.#clients = clients;
  }

  /** Takes a step of a request. */
  observe(endpoint: string, step: Observation): void {
    const id = `${endpoint}-${step.request}`;
    const exchange = this.#open.get(id);
    if (step.phase === "arrived") this.#arrived(id, endpoint, step);
    else if (exchange && step.phase === "executed") this.#executed(exchange, step);
    else if (exchange && step.phase === "ended") this.#ended(exchange, step);
  }

  #arrived(id: string, endpoint: string, step: Extract<Observation, { phase: "arrived" }>): void {
    const words = wordsOf(commandsOf(step.path, step.body));
    const { at, connection, agent } = step;
    const drawn = this.#drawn < mostDrawn;
    if (drawn) this.#drawn += 1;
    else this.#undrawn += 1;
    const nothing = { client: undefined, outcome: undefined, error: undefined, ended: undefined };
    const facts = { id, endpoint, at, connection, agent, words, drawn };
    const exchange: Exchange = { ...facts, ...nothing, executions: 0, billed: 0 };
    this.#open.set(id, exchange);
    const [oldest] = this.#open.keys();
    if (this.#open.size > mostOpen && oldest !== undefined) this.#open.delete(oldest);
    // More are not shown either. Who sent them is not asked: each is a few kB until the next flush.
    if (this.#fresh.length < mostOpen) this.#fresh.push(exchange);
    this.#latest = [exchange, ...this.#latest].slice(0, mostRows);
    const { operation, key } = words;
    this.#draft(exchange, { time: at, phase: "sent", operation, ...(key && { key: labelOf(key) }) });
  }

  #executed(exchange: Exchange, { at, command, outcome }: Extract<Observation, { phase: "executed" }>): void {
    const { words } = exchange;
    exchange.billed += outcome.billed;
    const error = outcome.reply instanceof ReplyError ? outcome.reply.message : undefined;
    exchange.error = error;
    const decides = words.commands === 1 && !isUncached(error);
    exchange.outcome = decides ? outcomeOf(words, command, outcome.reply) : undefined;
    // A pipeline is executed when its first command is; the first one once more is another execution of all of it.
    if (exchange.executions % Math.max(1, words.commands) === 0) {
      const known = exchange.outcome && { outcome: exchange.outcome };
      this.#draft(exchange, { time: at, phase: "executed", ...known });
    }
    exchange.executions += 1;
  }

  #ended(exchange: Exchange, { at, status }: Extract<Observation, { phase: "ended" }>): void {
    exchange.ended = { at, status };
    this.#open.delete(exchange.id);
    if (status === undefined) {
      this.#draft(exchange, { time: at, phase: "lost", what: exchange.executions > 0 ? "reply" : "request" });
      return;
    }
    const failed = status >= 400 && !isUncached(exchange.error);
    const outcome = failed ? "error" : exchange.outcome;
    this.#draft(exchange, { time: at, phase: "answered", ...(outcome && { outcome }) });
  }

  #draft(exchange: Exchange, event: Omit<TimelineEvent, "client" | "endpoint" | "request">): void {
    if (!exchange.drawn) return;
    this.#drafts.push({ ...event, endpoint: exchange.endpoint, request: exchange.id, exchange });
  }

  /** Takes what an endpoint has under a key since `at`; undefined: nothing. */
  stored(endpoint: string, key: string, value: SeenValue | undefined, at: number): void {
    const about = { time: at, endpoint, key };
    if (!value) {
      this.#drafts.push({ ...about, phase: "removed" });
      return;
    }
    const { until, fence, token } = value;
    const expiry = until < Number.MAX_SAFE_INTEGER ? { until } : {};
    this.#drafts.push({ ...about, phase: "stored", ...expiry, ...(fence && { fence }), token });
  }

  /** Takes the begin or the end of a fault. */
  fault(endpoint: string, name: string, phase: "fault" | "healed", at: number): void {
    this.#drafts.push({ time: at, phase, endpoint, name });
  }

  /** The events since the last flush, in the order of their times. `holding`: the clients that hold something. */
  flush(now: number, holding: ReadonlySet<string> = new Set()): TimelineEvent[] {
    const fresh = this.#fresh;
    const names = this.#clients.namesOf(fresh.map(senderOf), now, holding);
    for (const [index, exchange] of fresh.entries()) exchange.client = names[index];
    const drafts = this.#drafts;
    this.#fresh = [];
    this.#drafts = [];
    this.#drawn = 0;
    return drafts.map((draft) => this.#event(draft)).sort((one, other) => one.time - other.time);
  }

  #event({ exchange, token, ...event }: Draft): TimelineEvent {
    if (exchange) return { ...event, ...(exchange.client !== undefined && { client: exchange.client }) };
    const holder = token === undefined ? undefined : this.#clients.nameOfToken(token);
    return holder === undefined ? event : { ...event, holder };
  }

  /** The latest requests, the newest first. */
  rows(): RequestRow[] {
    // A client may have become known as another one since.
    return this.#latest.map((exchange) =>
      rowOf({ ...exchange, client: this.#clients.nameOf(senderOf(exchange)) ?? exchange.client }),
    );
  }

  /** How many requests the picture has left out since the last call. */
  takeUndrawn(): number {
    const undrawn = this.#undrawn;
    this.#undrawn = 0;
    return undrawn;
  }
}

const senderOf = ({ connection, agent, words: { tokens } }: Exchange): Sender => ({
  connection,
  agent,
  tokens,
});

/** Whether Redis does not know a script yet: no failure, the client sends its text next. */
const isUncached = (error: string | undefined): boolean => error?.startsWith("NOSCRIPT") === true;

function rowOf(exchange: Exchange): RequestRow {
  const { id, at, client = "", endpoint, words, billed, ended } = exchange;
  const { operation, key } = words;
  const result = resultOf(exchange);
  return {
    id,
    at,
    client,
    endpoint,
    operation,
    resource: key ? labelOf(key) : "",
    result,
    failed: /^(?:HTTP|error|request lost|reply lost)/.test(result),
    billed,
    ...(ended && { ms: ended.at - at }),
  };
}

function resultOf({ ended, executions, outcome, error, words }: Exchange): string {
  if (!ended) return "under way";
  const { status } = ended;
  if (status === undefined) return executions > 0 ? "reply lost" : "request lost";
  const again = executions >= 2 * Math.max(1, words.commands) ? ", executed twice" : "";
  // The first words of Redis's error: the rest may quote what was sent.
  if (isUncached(error)) return "script not cached";
  if (error !== undefined) return `error ${error.split(" ", 1)[0]}${again}`;
  if (status >= 400) return `HTTP ${status}`;
  return `${outcome ?? "ok"}${again}`;
}
