import { keyOf, type StoredKey } from "../../../src/stored/parse.ts";
import { isReading } from "../rest/http/command-access.ts";
import type { Observation } from "../rest/observe.ts";
import type { LocalEndpoints } from "../rest/start.ts";
import { Clients } from "./clients.ts";
import { EndpointWatch } from "./endpoint-watch.ts";
import { heldKind, isOfRuns, labelOf } from "./key.ts";
import { Recording } from "./recording.ts";
import { outcomeOf, wordsOf } from "./request.ts";
import type { Happening, LockRow, PageState, RecordRow } from "./state.ts";
import { type Across, lockRow, recordRow } from "./stored.ts";

const mostRows = 1_000;
const badFirst: readonly RecordRow["state"][] = ["corrupt", "unfinished", "pending", "complete"];
const mostHappenings = 12;

/** Watches local endpoints for the page: their requests, their faults, and what they have stored. */
export class Watch {
  readonly #local: LocalEndpoints;
  readonly #quorum: number;
  readonly #clients = new Clients();
  readonly #recording = new Recording(this.#clients);
  readonly #endpoints: readonly EndpointWatch[];
  readonly #timer: NodeJS.Timeout;
  readonly #waiting = new Set<() => void>();
  /** What is held, and by whom. */
  readonly #holders = new Map<string, { readonly parts: StoredKey; readonly holder: string }>();
  /** Their texts are made when they are asked for: whose a token is may become known later. */
  #happenings: { readonly at: number; readonly name: string; readonly say: () => string }[] = [];
  #look = 0;
  #viewers = 0;
  #closed = false;

  /** @param interval ms between two looks, and between two messages to one page at least. */
  constructor(local: LocalEndpoints, interval: number) {
    this.#local = local;
    this.#quorum = Math.floor(local.endpoints.length / 2) + 1;
    this.#endpoints = local.endpoints.map(
      (endpoint) =>
        new EndpointWatch(endpoint, {
          stored: (parts, at) => this.#noteChange(parts, at),
          fault: (name, phase, at) => this.#happened(at, endpoint.name, () => faultText(name, phase)),
        }),
    );
    for (const [index, endpoint] of local.endpoints.entries()) {
      endpoint.observe((step) => this.#observe(this.#endpoints[index]!, step));
    }
    this.#timer = setInterval(() => this.tick(), interval);
    this.#timer.unref();
  }

  /** Ends all views. */
  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const endpoint of this.#local.endpoints) endpoint.observe(undefined);
    for (const resume of this.#waiting) resume();
  }

  /** Looks at all endpoints now: called at each interval, and after the page has changed something. */
  tick(): void {
    const now = Date.now();
    this.#look += 1;
    for (const endpoint of this.#endpoints) endpoint.look(now, this.#viewers > 0);
    // What has expired is not announced by anybody.
    for (const { parts } of [...this.#holders.values()]) this.#noteChange(parts, now);
    const rows = [...this.#holders.keys()].flatMap((key) => this.#lockRow(key)?.client ?? []);
    this.#recording.nameClients(now, new Set(rows));
    for (const resume of this.#waiting) resume();
  }

  #observe(endpoint: EndpointWatch, step: Observation): void {
    this.#recording.observe(endpoint.name, step);
    if (step.phase !== "executed" || isReading(step.command)) return;
    const words = wordsOf([step.command]);
    const outcome = outcomeOf(words, step.command, step.outcome.reply);
    // What was refused has changed nothing.
    if (outcome !== "held" && outcome !== "gone") endpoint.changed(words.keys, step.at);
    if (/^flush(all|db)$/i.test(String(step.command[0]))) endpoint.forget(step.at);
  }

  /** What all endpoints have under a key. */
  #across(key: string): Across {
    return this.#endpoints.map((endpoint) => endpoint.holds(key));
  }

  /** Says who got what, and who freed it. */
  #noteChange(parts: StoredKey, at: number): void {
    const kind = heldKind(parts);
    if (kind === undefined) return;
    const across = this.#across(parts.key);
    const rowNow = () => lockRow(across, this.#quorum, (token) => this.#clients.nameOfToken(token));
    const row = rowNow();
    const holder = row?.held ? row.holder : undefined;
    if (holder === this.#holders.get(parts.key)?.holder) return;
    this.#holders.delete(parts.key);
    if (holder !== undefined) this.#holders.set(parts.key, { parts, holder });
    const [oldest] = this.#holders.keys();
    if (this.#holders.size > 1_000 && oldest !== undefined) this.#holders.delete(oldest);
    this.#happened(at, labelOf(parts), () => holderText(rowNow()));
  }

  #lockRow(key: string): LockRow | undefined {
    return lockRow(this.#across(key), this.#quorum, (token) => this.#clients.nameOfToken(token));
  }

  #happened(at: number, name: string, say: () => string): void {
    this.#happenings = [{ at, name, say }, ...this.#happenings].slice(0, mostHappenings);
  }

  /** What is now. */
  state(): PageState {
    const now = Date.now();
    const parts = new Map(this.#endpoints.flatMap((each) => each.shown(now)).map((each) => [each.key, each]));
    // The newest first.
    const newest = [...parts.values()].reverse();
    const locks = newest.flatMap(({ key }) => this.#lockRow(key) ?? []);
    const records = this.#records(newest);
    return {
      now,
      engine: this.#local.engine,
      quorum: this.#quorum,
      endpoints: this.#endpoints.map((endpoint) => endpoint.state(now)),
      locks: locks.slice(0, mostRows),
      moreLocks: Math.max(0, locks.length - mostRows),
      records: records.slice(0, mostRows),
      moreRecords: Math.max(0, records.length - mostRows),
      requests: this.#recording.rows(),
      happenings: this.#happenings.map(({ at, name, say }): Happening => ({ at, name, text: say() })),
    };
  }

  #records(keys: readonly StoredKey[]): RecordRow[] {
    // A key of which only the count is left has a row as well.
    const ofRuns = keys.filter(isOfRuns).map((parts) => {
      const { prefix, kind, resource, key } = parts;
      return {
        record: kind === "tries" ? keyOf(prefix, "idem", resource) : key,
        count: keyOf(prefix, "tries", resource),
      };
    });
    const byName = new Map(ofRuns.map((names) => [names.record, names]));
    const rows = [...byName.values()].flatMap(
      ({ record, count }) => recordRow(this.#across(record), this.#across(count)) ?? [],
    );
    return rows.sort((one, other) => badFirst.indexOf(one.state) - badFirst.indexOf(other.state));
  }

  /**
   * One page's view. `next` resolves with the state at the next look, whenever it is called: a page that reads slowly
   * gets fewer ones. It resolves with undefined once the watch is closed.
   */
  view(): { next(): Promise<PageState | undefined>; close(): void } {
    this.#viewers += 1;
    let seen: number | undefined;
    let open = true;
    return {
      next: async () => {
        if (seen !== undefined) await this.#nextLook(seen);
        else this.tick();
        if (this.#closed) return undefined;
        seen = this.#look;
        return this.state();
      },
      close: () => {
        if (open) this.#viewers -= 1;
        open = false;
      },
    };
  }

  #nextLook(seen: number): Promise<void> {
    return new Promise((resolve) => {
      const resume = () => {
        if (this.#look <= seen && !this.#closed) return;
        this.#waiting.delete(resume);
        resolve();
      };
      this.#waiting.add(resume);
      resume();
    });
  }
}

function holderText(row: LockRow | undefined): string {
  if (!row?.held) return "is no longer held";
  const fence = row.fence === undefined ? "" : `, fence ${row.fence}`;
  const client = row.client === undefined ? "" : `${row.client}, `;
  const note = row.note === undefined ? "" : `, ${JSON.stringify(row.note)}`;
  return `is held by ${client}${row.holder}${note}${fence} (${row.kind})`;
}

function faultText(name: string, phase: "fault" | "healed"): string {
  if (name === "stopped") return phase === "fault" ? "was stopped" : "was started";
  return phase === "fault" ? `has the fault ${name}` : `no longer has the fault ${name}`;
}
