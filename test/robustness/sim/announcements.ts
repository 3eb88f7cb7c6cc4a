import { quorumOf } from "../../../src/quorum/tally.ts";
import type { Process } from "./process.ts";
import type { Request } from "./request.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

/** One announcement of a debounced call: its text, and what the wire has shown of it. */
export interface Announcement {
  readonly process: Process;
  readonly key: string;
  readonly text: string;
  /** When it was sent to anybody. */
  readonly sent: number[];
  /** Since when it stands at a server, or something later that came after it. */
  readonly standing: Map<Server, number>;
  /** What its process was told by each server, and when. */
  readonly told: { readonly server: Server; readonly at: number; readonly granted: boolean }[];
}

/** Keeps book of what debounced calls announce. */
export class Announcements {
  readonly #world: World;
  readonly #byText = new Map<string, Announcement>();
  /** The last one of a process for a key. */
  readonly #last = new Map<string, Announcement>();

  constructor(world: World) {
    this.#world = world;
  }

  sent(process: Process, { keys, value: text }: Request): void {
    const key = keys[0]!;
    let announcement = this.#byText.get(text);
    if (!announcement) {
      announcement = { process, key, text, sent: [], standing: new Map(), told: [] };
      this.#byText.set(text, announcement);
      this.#last.set(`${process.name} ${key}`, announcement);
    }
    announcement.sent.push(this.#world.now);
  }

  executed(server: Server, { value }: Request, granted: boolean): void {
    const { standing } = this.#byText.get(value)!;
    if (granted && !standing.has(server)) standing.set(server, this.#world.now);
  }

  answered(server: Server, { value }: Request, granted: boolean): void {
    this.#byText.get(value)!.told.push({ server, at: this.#world.now, granted });
  }

  /** What stood at a server is withdrawn, and with it whatever it had replaced. */
  dropped(server: Server, { keys, value }: Request): void {
    if (!this.#byText.has(value)) return;
    for (const { key, standing } of this.#byText.values()) if (key === keys[0]) standing.delete(server);
  }

  /** The last one of a process for a key. */
  last(process: Process, key: string): Announcement | undefined {
    return this.#last.get(`${process.name} ${key}`);
  }

  /** All others for the same key that a quorum has, each sent only after a quorum had this one. */
  after(announcement: Announcement): Announcement[] {
    const since = this.complete(announcement);
    return [...this.#byText.values()].filter(
      (other) =>
        other.key === announcement.key && other.process !== announcement.process && other.sent[0]! > since,
    );
  }

  /** Since when a quorum has it; Infinity when none has. */
  complete({ standing }: Announcement): number {
    const times = [...standing.values()].sort((one, two) => one - two);
    return times[quorumOf(this.#world.servers.length) - 1] ?? Number.POSITIVE_INFINITY;
  }
}
