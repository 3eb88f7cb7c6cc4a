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
  #requests: (UnnamedRow & { readonly peer: Peer })[] = [];
  /** By key, the calls that got a stored result: all endpoints say it. */
  readonly #replays = new Map<string, Set<string>>();

  constructor(local: LocalEndpoints) {
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
  }

  close(): void {
    for (const endpoint of this.#local.endpoints) endpoint.observe(undefined);
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

  /** What is known now. Looks at all endpoints, for the next time. */
  state(): PageState {
    for (const watch of this.#endpoints) watch.look(Date.now());
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
}
