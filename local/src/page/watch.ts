import { keyOf, type StoredKey } from "../../../src/inspect/stored-key.ts";
import { isReading } from "../rest/http/command-access.ts";
import type { Executed, Peer } from "../rest/observe.ts";
import type { LocalEndpoints } from "../rest/start.ts";
import { Clients } from "./clients.ts";
import { EndpointWatch } from "./endpoint-watch.ts";
import { isOfRuns } from "./key.ts";
import { merged, resultOf, rowsOf, type UnnamedRow, wordsOf } from "./request.ts";
import type { PageState, RecordRow } from "./state.ts";
import { type Across, lockRow, recordRow } from "./stored.ts";

/** Keys of which replays are counted. */
const mostRemembered = 1_000;
/** Requests that are kept: more than the page lists, for its search. */
const mostRequests = 200;
const badFirst: readonly RecordRow["state"][] = ["corrupt", "unfinished", "pending", "complete"];

/** Watches local endpoints for the page: their requests, their faults, and what they have stored. */
export class Watch {
  readonly #local: LocalEndpoints;
  readonly #quorum: number;
  readonly #clients = new Clients();
  readonly #endpoints: readonly EndpointWatch[];
  readonly #timer: NodeJS.Timeout;
  #waiting: (() => void)[] = [];
  #requests: (UnnamedRow & { readonly peer: Peer })[] = [];
  /** By key, the calls that got a stored result: all endpoints say it. */
  readonly #replays = new Map<string, Set<string>>();
  #look = 0;
  #closed = false;

  /** @param interval ms between two looks, and between two messages to one page at least. */
  constructor(local: LocalEndpoints, interval: number) {
    this.#local = local;
    this.#quorum = Math.floor(local.endpoints.length / 2) + 1;
    this.#endpoints = local.endpoints.map((each) => new EndpointWatch(each));
    for (const watch of this.#endpoints) {
      const { endpoint } = watch;
      endpoint.observe({
        executed: (peer, command) => this.#executed(watch, peer, command),
        ended: (exchange) => {
          const rows = rowsOf(endpoint.name, exchange).map((row) => ({ ...row, peer: exchange.peer }));
          this.#requests = [...rows.reverse(), ...this.#requests].slice(0, mostRequests);
        },
      });
    }
    this.#timer = setInterval(() => this.tick(), interval);
    this.#timer.unref();
  }

  /** Ends all views. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const endpoint of this.#local.endpoints) endpoint.observe(undefined);
    this.#resume();
  }

  #resume(): void {
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Looks at all endpoints now: called at each interval, and after the page has changed something. */
  tick(): void {
    this.#look += 1;
    for (const watch of this.#endpoints) watch.look(Date.now());
    this.#resume();
  }

  #executed(watch: EndpointWatch, peer: Peer, { command, reply }: Executed): void {
    const words = wordsOf(command);
    const { key, keys, tokens } = words;
    this.#clients.see(peer, Number(new URL(watch.endpoint.url).port), tokens);
    if (isReading(command)) return;
    watch.changed(keys);
    if (/^flush(all|db)$/i.test(String(command[0]))) watch.forget();
    if (!key || !isOfRuns(key) || resultOf(words, command, reply) !== "replayed") return;
    const calls = this.#replays.get(key.key) ?? new Set();
    this.#replays.set(key.key, calls.add(tokens[0] ?? ""));
    const [oldest] = this.#replays.keys();
    if (this.#replays.size > mostRemembered) this.#replays.delete(oldest!);
  }

  /** What all endpoints have under a key. */
  #across(key: string): Across {
    return this.#endpoints.map((endpoint) => endpoint.holds(key));
  }

  /** What is now. */
  state(): PageState {
    const keys = new Map(this.#endpoints.flatMap((each) => each.keys()).map((each) => [each.key, each]));
    const newest = [...keys.values()].reverse();
    const clientOf = (token: string) => this.#clients.nameOfToken(token);
    const requests = this.#requests.map(({ peer, ...row }) => ({
      ...row,
      client: this.#clients.nameOf(peer),
    }));
    return {
      now: Date.now(),
      engine: this.#local.engine,
      quorum: this.#quorum,
      endpoints: this.#endpoints.map((endpoint) => endpoint.state()),
      locks: newest.flatMap(({ key }) => lockRow(this.#across(key), this.#quorum, clientOf) ?? []),
      records: this.#records(newest),
      requests: merged(requests),
    };
  }

  #records(keys: readonly StoredKey[]): RecordRow[] {
    // A key of which only the count is left has a row as well.
    const names = keys
      .filter(isOfRuns)
      .map(({ prefix, kind, resource, key }) => (kind === "tries" ? keyOf(prefix, "idem", resource) : key));
    const rows = [...new Set(names)].flatMap((name) => {
      const count = this.#across(name.replace(/:(?:idem|flight):(?={)/, ":tries:"));
      const row = recordRow(this.#across(name), count);
      return row ? [{ ...row, replays: this.#replays.get(name)?.size ?? 0 }] : [];
    });
    return rows.sort((one, other) => badFirst.indexOf(one.state) - badFirst.indexOf(other.state));
  }

  /** Resolves with the state at the next look after the given one, or with undefined once the watch is closed. */
  async next(seen: number): Promise<{ readonly look: number; readonly state: PageState } | undefined> {
    while (this.#look <= seen && !this.#closed) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return this.#closed ? undefined : { look: this.#look, state: this.state() };
  }
}
