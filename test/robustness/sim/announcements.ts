import { quorumOf } from "../../../src/quorum/tally.ts";
import type { Process } from "./process.ts";
import type { Request } from "./request.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

/** One announcement of a debounced call, with what happened to it on the wire. Times are virtual ms. */
export interface Announcement {
  readonly process: Process;
  readonly key: string;
  readonly text: string;
  /** When it was sent to any server. */
  readonly sent: number[];
  /** Since when a server has it, or a later one that replaced it. */
  readonly standing: Map<Server, number>;
  /** When a server last stored it. */
  readonly stored: Map<Server, number>;
  /** The answers of the servers. */
  readonly answers: { readonly server: Server; readonly at: number; readonly granted: boolean }[];
}

/** Records the announcements of debounced calls. */
export class Announcements {
  readonly #world: World;
  readonly #byText = new Map<string, Announcement>();
  /** The last one, by process and key. */
  readonly #last = new Map<string, Announcement>();

  constructor(world: World) {
    this.#world = world;
  }

  sent(process: Process, { keys, value: text }: Request): void {
    const key = keys[0]!;
    let announcement = this.#byText.get(text);
    if (!announcement) {
      announcement = { process, key, text, sent: [], standing: new Map(), stored: new Map(), answers: [] };
      this.#byText.set(text, announcement);
      this.#last.set(`${process.name} ${key}`, announcement);
    }
    announcement.sent.push(this.#world.now);
  }

  executed(server: Server, { value, ttl = 0 }: Request, granted: boolean): void {
    if (!granted) return;
    const announcement = this.#byText.get(value)!;
    const { standing, stored, answers } = announcement;
    // One that its client does not know of, and that has expired since, counts from when it is made again: calls that
    // came and went in between were earlier ones. Clocks of servers may be fast by half a percent.
    const isExpired = this.#world.now - stored.get(server)! > 0.99 * ttl;
    const isKnown = new Set(answers.map((answer) => answer.server)).size >= this.#quorum;
    if (!standing.has(server) || (isExpired && !isKnown)) standing.set(server, this.#world.now);
    stored.set(server, this.#world.now);
  }

  answered(server: Server, { value }: Request, granted: boolean): void {
    this.#byText.get(value)!.answers.push({ server, at: this.#world.now, granted });
  }

  /** A server removed an announcement, and with it all that the announcement had replaced. */
  removed(server: Server, { keys, value }: Request): void {
    if (!this.#byText.has(value)) return;
    for (const { key, standing } of this.#byText.values()) if (key === keys[0]) standing.delete(server);
  }

  /** The last announcement of a process for a key. */
  last(process: Process, key: string): Announcement | undefined {
    return this.#last.get(`${process.name} ${key}`);
  }

  /** The other processes' announcements for the same key that were first sent when a quorum had this one. */
  after(announcement: Announcement): Announcement[] {
    const since = this.quorumSince(announcement);
    return [...this.#byText.values()].filter(
      (other) =>
        other.key === announcement.key && other.process !== announcement.process && other.sent[0]! > since,
    );
  }

  /** Since when a quorum has an announcement; Infinity when none has. */
  quorumSince({ standing }: Announcement): number {
    const times = [...standing.values()].sort((one, two) => one - two);
    return times[this.#quorum - 1] ?? Number.POSITIVE_INFINITY;
  }

  get #quorum(): number {
    return quorumOf(this.#world.servers.length);
  }
}
