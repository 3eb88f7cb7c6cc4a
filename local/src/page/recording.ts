import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Observation } from "../rest/observe.ts";
import type { Clients, Sender } from "./clients.ts";
import { labelOf } from "./key.ts";
import { commandsOf, type Outcome, outcomeOf, type RequestWords, wordsOf } from "./request.ts";
import type { RequestRow } from "./state.ts";

// Makes rows of the page from what happens to requests. No I/O, no clock.

/** A request, from its arrival to its end. */
interface Exchange {
  readonly id: string;
  readonly endpoint: string;
  readonly at: number;
  readonly connection: string;
  readonly agent: string;
  readonly words: RequestWords;
  client: string | undefined;
  executions: number;
  outcome: Outcome | undefined;
  error: string | undefined;
  billed: number;
  ended: { readonly at: number; readonly status: number | undefined } | undefined;
}

/** Requests that are kept: more than the page lists, for its search. */
const mostRows = 200;
/** Requests under way that are followed. */
const mostOpen = 500;

export class Recording {
  readonly #clients: Clients;
  readonly #open = new Map<string, Exchange>();
  #fresh: Exchange[] = [];
  #latest: Exchange[] = [];

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
    const nothing = { client: undefined, outcome: undefined, error: undefined, ended: undefined };
    const facts = { id, endpoint, at, connection, agent, words };
    const exchange: Exchange = { ...facts, ...nothing, executions: 0, billed: 0 };
    this.#open.set(id, exchange);
    const [oldest] = this.#open.keys();
    if (this.#open.size > mostOpen && oldest !== undefined) this.#open.delete(oldest);
    // More are not listed either. Who sent them is not asked: each is a few kB until then.
    if (this.#fresh.length < mostOpen) this.#fresh.push(exchange);
    this.#latest = [exchange, ...this.#latest].slice(0, mostRows);
  }

  #executed(exchange: Exchange, { command, outcome }: Extract<Observation, { phase: "executed" }>): void {
    const { words } = exchange;
    exchange.billed += outcome.billed;
    const error = outcome.reply instanceof ReplyError ? outcome.reply.message : undefined;
    exchange.error = error;
    const decides = words.commands === 1 && !isUncached(error);
    exchange.outcome = decides ? outcomeOf(words, command, outcome.reply) : undefined;
    exchange.executions += 1;
  }

  #ended(exchange: Exchange, { at, status }: Extract<Observation, { phase: "ended" }>): void {
    exchange.ended = { at, status };
    this.#open.delete(exchange.id);
  }

  /** Says whose the requests since the last time are. `holding`: the clients that hold something. */
  nameClients(now: number, holding: ReadonlySet<string> = new Set()): void {
    const fresh = this.#fresh;
    this.#fresh = [];
    const names = this.#clients.namesOf(fresh.map(senderOf), now, holding);
    for (const [index, exchange] of fresh.entries()) exchange.client = names[index];
  }

  /** The latest requests, the newest first. */
  rows(): RequestRow[] {
    // A client may have become known as another one since.
    return this.#latest.map((exchange) =>
      rowOf({ ...exchange, client: this.#clients.nameOf(senderOf(exchange)) ?? exchange.client }),
    );
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
