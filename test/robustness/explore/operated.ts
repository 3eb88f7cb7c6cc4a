import { nonceOf } from "../sim/request.ts";
import type { Snapshot } from "../sim/standing.ts";
import type { Client } from "./client.ts";
import { type Contents, textAt } from "./store.ts";
import type { Message, Server, World } from "./world.ts";

/** What one execution of a request to inspect met. */
export interface Look extends Snapshot {
  readonly client: Client;
  readonly server: Server;
  readonly key: string;
  /** ms. */
  readonly at: number;
}

/** What operators' requests met and removed. */
export class Operated {
  /** Nonces of what an operator has freed on any endpoint: nobody may rely on that any more. */
  readonly freed = new Set<string>();
  readonly #looks: Look[] = [];
  /** The keys that an operator means to free: nobody else is excused for freeing one. */
  readonly #meant = new Set<string>();
  /** By key: when a stored result or a count of runs was last removed on any endpoint, in ms. */
  readonly #removals = new Map<string, number>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** An operator is about to free a key. */
  frees(key: string): void {
    this.#meant.add(key);
  }

  /** An endpoint executed a request. Only those of operators concern this. */
  executed({ client, server, request }: Message, before: Contents, after: Contents): void {
    if (!request || !["free", "release", "peek"].includes(request.operation)) return;
    const { operation, keys, value, counter } = request;
    const [key = ""] = keys;
    const text = textAt(before, key);
    const isGone = text !== undefined && textAt(after, key) === undefined;
    if (operation === "free" && isGone && this.#meant.has(key)) {
      this.freed.add(nonceOf(text));
      this.#world.note(`freed ${text}`);
    }
    if (operation === "release" && isGone && /^[CNA]1 /.test(value)) {
      this.#removals.set(key, this.#world.time);
      this.#world.note(`removed ${key} at ${this.#world.time}`);
    }
    if (counter === undefined) return;
    const { deadline = 0 } = before.entries.get(key) ?? {};
    const remaining = Math.max(0, deadline - this.#world.serverTime());
    const { time: at } = this.#world;
    this.#looks.push({
      ...{ client, server: server!, key, at, text, remaining },
      counter: textAt(before, counter) ?? "",
    });
  }

  /** What a client's requests to inspect a key met since `time`. */
  looksSince(client: Client, key: string, time: number): Look[] {
    return this.#looks.filter((look) => look.client === client && look.key === key && look.at >= time);
  }

  /** When a result or a count of a key was last removed on any endpoint; -Infinity: never. */
  lastRemoval(key: string): number {
    return this.#removals.get(key) ?? Number.NEGATIVE_INFINITY;
  }
}
