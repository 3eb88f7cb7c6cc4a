import { keyOf, type StoredKey } from "../../../src/inspect/stored-key.ts";
import { isReading } from "../rest/http/command-access.ts";
import type { Executed, Peer } from "../rest/observe.ts";
import type { LocalEndpoints } from "../rest/start.ts";
import { Clients } from "./clients.ts";
import { EndpointWatch, faultName } from "./endpoint-watch.ts";
import { heldKind, isOfRuns, labelOf } from "./key.ts";
import { resultOf, rowsOf, wordsOf } from "./request.ts";
import type { LockRow, PageState, RecordRow, RequestRow } from "./state.ts";
import { type Across, lockRow, recordRow } from "./stored.ts";

/** Keys of which is known what was said. */
const mostRemembered = 1_000;
/** Requests that are kept: more than the page lists, for its search. */
const mostRequests = 200;
const mostHappenings = 12;
const badFirst: readonly RecordRow["state"][] = ["corrupt", "unfinished", "pending", "complete"];

/** What happens to a run, in words; extensions are left out. */
const runTexts: Readonly<Record<string, string>> = {
  begun: "has begun to run",
  executed: "was executed",
  failed: "has failed, and may run again",
  replayed: "was replayed: a duplicate got the stored result",
  waiting: "has a duplicate, which waits for the run",
};

/** Watches local endpoints for the page: their requests, their faults, and what they have stored. */
export class Watch {
  readonly #local: LocalEndpoints;
  readonly #quorum: number;
  readonly #clients = new Clients();
  readonly #endpoints: readonly EndpointWatch[];
  readonly #timer: NodeJS.Timeout;
  #waiting: (() => void)[] = [];
  #requests: (Omit<RequestRow, "client"> & { readonly peer: Peer })[] = [];
  #count = 0;
  /** What is held, and by whom. */
  readonly #holders = new Map<string, { readonly parts: StoredKey; readonly holder: string }>();
  /** What was said last of a run: all endpoints say it. */
  readonly #saidOfRuns = new Map<string, string>();
  readonly #replays = new Map<string, number>();
  #faults: readonly (readonly [endpoint: string, fault: string])[] = [];
  /** Their texts are made when they are asked for: who a client is may become known later. */
  #happenings: { readonly at: number; readonly name: string; readonly say: () => string }[] = [];
  #look = 0;
  #closed = false;

  /** @param interval ms between two looks, and between two messages to one page at least. */
  constructor(local: LocalEndpoints, interval: number) {
    this.#local = local;
    this.#quorum = Math.floor(local.endpoints.length / 2) + 1;
    this.#endpoints = local.endpoints.map(
      (each) => new EndpointWatch(each, (parts) => this.#noteHolder(parts)),
    );
    for (const watch of this.#endpoints) {
      const { endpoint } = watch;
      endpoint.observe({
        executed: (peer, command) => this.#executed(watch, peer, command),
        ended: (exchange) => {
          const rows = rowsOf(endpoint.name, exchange).map((row) => {
            this.#count += 1;
            return { ...row, id: this.#count, peer: exchange.peer };
          });
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
    // What has expired is not announced by anybody.
    for (const { parts } of [...this.#holders.values()]) this.#noteHolder(parts);
    this.#noteFaults();
    this.#resume();
  }

  #executed(watch: EndpointWatch, peer: Peer, { command, reply }: Executed): void {
    const words = wordsOf(command);
    this.#clients.see(peer, Number(new URL(watch.endpoint.url).port), words.tokens);
    if (isReading(command)) return;
    watch.changed(words.keys);
    if (/^flush(all|db)$/i.test(String(command[0]))) watch.forget();
    if (words.key && isOfRuns(words.key))
      this.#noteRun(words.key, words.tokens, resultOf(words, command, reply), peer);
  }

  #noteRun({ key, ...parts }: StoredKey, tokens: readonly string[], result: string, peer: Peer): void {
    const text = runTexts[result];
    // Who waits asks again and again.
    const id = result === "waiting" ? key : `${key} ${tokens[0]}`;
    if (result === "executed" || result === "failed") this.#saidOfRuns.delete(key);
    if (text === undefined || this.#saidOfRuns.get(id) === result) return;
    remember(this.#saidOfRuns, id, result);
    if (result === "replayed") remember(this.#replays, key, 1 + (this.#replays.get(key) ?? 0));
    this.#happened(labelOf({ key, ...parts }), () => `${text} (${this.#clients.nameOf(peer)})`);
  }

  /** Says who got what, and that it is free again. */
  #noteHolder(parts: StoredKey): void {
    if (heldKind(parts) === undefined) return;
    const across = this.#across(parts.key);
    const rowNow = () => lockRow(across, this.#quorum, (token) => this.#clients.nameOfToken(token));
    const row = rowNow();
    const holder = row?.held ? row.holder : undefined;
    if (holder === this.#holders.get(parts.key)?.holder) return;
    if (holder === undefined) this.#holders.delete(parts.key);
    else remember(this.#holders, parts.key, { parts, holder });
    this.#happened(labelOf(parts), () => holderText(rowNow()));
  }

  #noteFaults(): void {
    const found = this.#endpoints.flatMap(({ endpoint: { name, running, faults } }) => [
      ...(running ? [] : [[name, "stopped"] as const]),
      ...faults.list().map((rule) => [name, faultName(rule)] as const),
    ]);
    const has = (list: readonly (readonly [string, string])[], [name, fault]: readonly [string, string]) =>
      list.some((each) => each[0] === name && each[1] === fault);
    for (const one of this.#faults)
      if (!has(found, one)) this.#happened(one[0], () => faultText(one[1], false));
    for (const one of found)
      if (!has(this.#faults, one)) this.#happened(one[0], () => faultText(one[1], true));
    this.#faults = found;
  }

  #happened(name: string, say: () => string): void {
    this.#happenings = [{ at: Date.now(), name, say }, ...this.#happenings].slice(0, mostHappenings);
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
    return {
      now: Date.now(),
      engine: this.#local.engine,
      quorum: this.#quorum,
      endpoints: this.#endpoints.map((endpoint) => endpoint.state()),
      locks: newest.flatMap(({ key }) => lockRow(this.#across(key), this.#quorum, clientOf) ?? []),
      records: this.#records(newest),
      requests: this.#requests.map(({ peer, ...row }) => ({ ...row, client: this.#clients.nameOf(peer) })),
      happenings: this.#happenings.map(({ at, name, say }) => ({ at, name, text: say() })),
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
      return row ? [{ ...row, replays: this.#replays.get(name) ?? 0 }] : [];
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

function remember<Value>(map: Map<string, Value>, id: string, value: Value): void {
  map.delete(id);
  map.set(id, value);
  const [oldest] = map.keys();
  if (map.size > mostRemembered && oldest !== undefined) map.delete(oldest);
}

function holderText(row: LockRow | undefined): string {
  if (!row?.held) return "is free";
  const { holder, client, note, fence, kind } = row;
  const more = [kind, holder, ...(note === undefined ? [] : [JSON.stringify(note)])];
  if (fence !== undefined) more.push(`fence ${fence}`);
  return `is held by ${client ?? "a client"} (${more.join(", ")})`;
}

function faultText(fault: string, isOn: boolean): string {
  if (fault === "stopped") return isOn ? "was stopped" : "was started";
  return isOn ? `has the fault ${fault}` : `no longer has the fault ${fault}`;
}
