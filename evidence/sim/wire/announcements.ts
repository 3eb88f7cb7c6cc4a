import { entryOf, quorumOf } from "../field.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";
import type { Request } from "./request.ts";

/** One announcement of a debounced call, with what happened to it on the wire. Times are virtual ms. */
export class Announcement {
  /** The client that sent it. */
  readonly by: string;
  readonly key: string;
  /** When it was sent to any server. */
  readonly sent: number[] = [];
  /** Since when a server has it, or a later one that replaced it. */
  readonly standing = new Map<Server, number>();
  /** When a server last stored it. */
  readonly stored = new Map<Server, number>();
  /** The answers of the servers. */
  readonly answers: { readonly server: Server; readonly at: number; readonly granted: boolean }[] = [];

  constructor(by: string, key: string) {
    this.by = by;
    this.key = key;
  }
}

/** Records the announcements of debounced calls. */
export class Announcements {
  readonly #world: World;
  readonly #byText = new Map<string, Announcement>();
  /** The last one, by client and key. */
  readonly #last = new Map<string, Announcement>();

  constructor(world: World) {
    this.#world = world;
  }

  sent({ name: by }: Process, { keys, value: text, ttl }: Request): void {
    if (isWithdrawal(ttl)) return;
    const key = keys[0]!;
    const announcement = entryOf(this.#byText, text, () => {
      const first = new Announcement(by, key);
      this.#last.set(`${by} ${key}`, first);
      return first;
    });
    announcement.sent.push(this.#world.now);
  }

  executed(server: Server, request: Request, granted: boolean): void {
    const { value, ttl = 0 } = request;
    if (!granted) return;
    if (isWithdrawal(ttl)) {
      this.#removed(server, request);
      return;
    }
    const announcement = this.#byText.get(value)!;
    const { standing, stored, answers } = announcement;
    // One that its client does not know of, and that has expired since, counts from when it is made again: calls that
    // came and went in between were earlier ones. Clocks of servers may be fast by half a percent.
    const isExpired = this.#world.now - stored.get(server)! > 0.99 * ttl;
    const isKnown = new Set(answers.map((answer) => answer.server)).size >= this.#quorum;
    // One that changes nothing is stored anew only once half of its ttl has passed.
    const isRenewed = !standing.has(server) || this.#world.now - stored.get(server)! > 0.49 * ttl;
    if (!standing.has(server) || (isExpired && !isKnown)) standing.set(server, this.#world.now);
    if (isRenewed) stored.set(server, this.#world.now);
  }

  answered(server: Server, { value, ttl }: Request, granted: boolean): void {
    if (isWithdrawal(ttl)) return;
    this.#byText.get(value)!.answers.push({ server, at: this.#world.now, granted });
  }

  /** A server removed an announcement, and with it all that the announcement had replaced. */
  #removed(server: Server, { keys, value }: Request): void {
    if (!this.#byText.has(value)) return;
    for (const { key, standing } of this.#byText.values()) if (key === keys[0]) standing.delete(server);
  }

  /** The last announcement of a client for a key. */
  last({ name }: Process, key: string): Announcement | undefined {
    return this.#last.get(`${name} ${key}`);
  }

  /** The other clients' announcements for the same key that were first sent when a quorum had this one. */
  after(announcement: Announcement): Announcement[] {
    const { key, by } = announcement;
    const since = this.quorumSince(announcement);
    return [...this.#byText.values()].filter(
      (other) => other.key === key && other.by !== by && other.sent[0]! > since,
    );
  }

  /** Since when a quorum has an announcement; Infinity when none has. */
  quorumSince({ standing }: Announcement): number {
    return [...standing.values()].sort((one, two) => one - two)[this.#quorum - 1] ?? Number.POSITIVE_INFINITY;
  }

  get #quorum(): number {
    return quorumOf(this.#world.servers.length);
  }
}

function isWithdrawal(ttl: number | undefined): boolean {
  return ttl === 0;
}
