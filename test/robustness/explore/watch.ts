import type { Message as Sent } from "../sim/link.ts";
import { idOf, isCompletion, nonceOf, type Request } from "../sim/request.ts";
import { isGranted, type Wire } from "../sim/wire.ts";
import type { Client } from "./client.ts";
import { type Contents, scoreOf, textAt } from "./contents.ts";
import { checkTurn } from "./turns.ts";
import type { Endpoint, Message, Watcher, World } from "./world.ts";

/** In the longest scenario, with a pause after each: the shortest pause is 30 ms. */
const mostExtensions = 50;

/** What became of one nonce on an endpoint, of an interval. Times are ms. */
interface Confirmed {
  /** When it was first and last extended by a request that had not been executed before. */
  readonly first: number;
  last: number;
  /** When it was removed. */
  removedAt: number;
}

/**
 * What the simulator checks at the end, or not at all, because it has no contents before and after each execution; and what
 * later checks depend on, as facts.
 */
export class Watch implements Watcher {
  readonly #world: World;
  readonly #wire: Wire;
  readonly #exactReplies: boolean;
  readonly #confirmed = new Map<string, Map<Endpoint, Confirmed>>();
  /** Who began each run, by its nonce. */
  readonly #owners = new Map<string, string>();
  readonly #commands = new Set<string>();
  /** The nonces that have acquired anything at a key. */
  readonly #acquired = new Map<string, Set<string>>();
  /** When a release of a nonce was last executed at an endpoint, in ms, by both names. */
  readonly #released = new Map<string, number>();

  constructor(world: World, wire: Wire, exactReplies: boolean) {
    this.#world = world;
    this.#wire = wire;
    this.#exactReplies = exactReplies;
  }

  sent(client: Client, { request, command }: Sent): void {
    const { operation, value } = request;
    const nonce = idOf(request);
    if (operation === "announce") this.#announced(client);
    if (operation === "acquire" && !isCompletion(command)) this.#owners.set(nonce, client.name);
    if (operation === "extend" && this.#wire.extensionsSent(nonce) === mostExtensions) {
      this.#violate("requests are bounded", `${client.name} sent ${mostExtensions} extensions of ${value}`);
    }
  }

  /** Which calls were announced before this one decides later what may run. */
  #announced({ name }: Client): void {
    const before = this.#wire.announcements.complete().filter(({ by }) => by !== name);
    if (before.length > 0) this.#world.note(`${name} after ${before.map(({ text }) => text)}`);
  }

  executed(message: Message, before: Contents, after: Contents): void {
    const { client, server, answer } = message;
    const { request, command } = message.request!;
    if (!server || !answer || "error" in answer || request.isCount) return;
    const granted = isGranted(request, command, answer.reply);
    const where = `${server.name} ${request.operation} ${request.keys.join()} for ${client.name}`;
    this.#checkContents(request, before, after, where);
    if (request.operation === "release")
      this.#released.set(`${idOf(request)} ${server.name}`, this.#world.now);
    const now = Math.floor(server.time());
    const report = this.#violate;
    checkTurn(report, request, { where, granted, before, after, now });
    if (!granted) this.#checkRefusal(message, before, where);
    else this.#checkGranted(message, where);
    const [key = ""] = request.keys;
    const text = textAt(before, key);
    const isGone = text !== undefined && textAt(after, key) === undefined;
    if (isGone) this.#removed(message, text);
    if (request.operation === "extend" && granted) this.#extended(message);
  }

  /** With a tombstone, nothing is acquired after its release, where the endpoint has kept its memory since. */
  #checkGranted({ server, request: sent, isCopy }: Message, where: string): void {
    const { operation, keys, from, tombstone } = sent!.request;
    const { forgotAt, name } = server!;
    const nonce = idOf(sent!.request);
    if ((operation !== "acquire" && operation !== "restore") || from > 1) return;
    const [key = ""] = keys;
    this.#acquired.set(key, (this.#acquired.get(key) ?? new Set()).add(nonce));
    const releasedAt = this.#released.get(`${nonce} ${name}`) ?? Number.NEGATIVE_INFINITY;
    if (tombstone === undefined || isCopy || releasedAt <= forgotAt) return;
    this.#violate("rolled back stays rolled back", `${where} after its rollback`);
  }

  /** Whether another round than that of a nonce has acquired a key. */
  isContended(key: string, nonce: string | undefined): boolean {
    return [...(this.#acquired.get(key) ?? [])].some((other) => other !== nonce);
  }

  /** Something stood there, and does not stand any more. */
  #removed({ client, server, request }: Message, text: string): void {
    const { operation, keys } = request!.request;
    if (operation === "free" || /^[CNA]1 /.test(text)) {
      this.#world.note(`${text} is gone from ${keys} at ${this.#world.now}`);
    }
    if (operation === "free" && !client.operates) this.#world.freed.delete(nonceOf(text));
    const confirmed = this.#confirmed.get(nonceOf(text))?.get(server!);
    if (confirmed && operation === "release") confirmed.removedAt = this.#world.now;
    if (operation !== "release" || !text.startsWith("P1 ")) return;
    // A run under way is removed only by the client that began it.
    const owner = this.#owners.get(nonceOf(text));
    if (owner !== client.name)
      this.#violate("a run is not forgotten", `${client.name} removes a run of ${owner}`);
  }

  #extended({ server, request: sent }: Message): void {
    const { request, command } = sent!;
    const { now } = this.#world;
    const nonce = idOf(request);
    const ofNonce = this.#confirmed.get(nonce) ?? new Map<Endpoint, Confirmed>();
    this.#confirmed.set(nonce, ofNonce);
    const known = ofNonce.get(server!);
    const name = `${server!.name} ${command.join("\0")}`;
    if (!known) ofNonce.set(server!, { first: now, last: now, removedAt: Number.POSITIVE_INFINITY });
    else if (!this.#commands.has(name)) known.last = now;
    this.#commands.add(name);
  }

  /** When each endpoint that has extended a nonce did so for the first and for the last time. */
  extensionsOf(nonce: string): Confirmed[] {
    return [...(this.#confirmed.get(nonce)?.values() ?? [])];
  }

  /** On how many endpoints something that was extended at `since` or later stood at `until` or later. */
  extendedOn(since: number, until: number): number {
    const all = [...this.#confirmed.values()].flatMap((ofNonce) => [...ofNonce]);
    const standing = all.filter(([, { last, removedAt }]) => last >= since && removedAt >= until);
    return new Set(standing.map(([server]) => server)).size;
  }

  /** A call that fails has at least tried to take its announcement back. */
  checkAtEnd(kept: ReadonlySet<string>): void {
    for (const { name, contents } of this.#world.servers) {
      for (const { key, value } of contents.entries.values()) {
        if (!key.startsWith("redlock:debounce:") || typeof value !== "string") continue;
        if (kept.has(nonceOf(value)) || this.#wire.releasesSent(nonceOf(value)) > 0) continue;
        this.#violate("nothing is abandoned", `${value} was left on ${name} and never rolled back`);
      }
    }
  }

  #checkContents({ operation, keys }: Request, before: Contents, after: Contents, where: string): void {
    for (const { key, deadline } of after.entries.values()) {
      if (deadline === undefined) this.#violate("every key expires", `${where}: ${key} has no ttl`);
    }
    if (operation !== "announce") return;
    for (const key of keys) {
      const [earlier = 0, later = 0] = [before, after].map(({ entries }) => entries.get(key)?.deadline);
      if (later < earlier) this.#violate("validity is honest", `${where} shortened it`);
    }
  }

  /** A request that is executed again must not be refused because of its first execution. Acquires: see the links. */
  #checkRefusal({ server, request: sent }: Message, before: Contents, where: string): void {
    const { request, command } = sent!;
    const { operation, from, locks, value } = request;
    if ((operation !== "extend" && operation !== "announce") || from !== 1) return;
    const now = server!.time();
    if (!stands(request, before, now) || (locks && !stands(locks, before, now))) return;
    // A plain command cannot recognise its own value. It is sent only where nobody repeats requests.
    const isPlain = command[0] === "SET" && this.#exactReplies;
    if (isPlain || this.#wire.isRestored(nonceOf(value), server!)) return;
    this.#violate("refusals are true", `${where} was refused because of itself`);
  }

  readonly #violate = (...violation: Parameters<World["report"]>) => this.#world.report(...violation);
}

/** Whether an endpoint with these contents has all that a request is about. */
function stands({ keys, value, from, isMember }: Request, contents: Contents, now: number): boolean {
  return keys.every((key) => {
    if (isMember) return scoreOf(contents, key, value)! > now;
    // That of a run has the number of its confirmation before it.
    const text = textAt(contents, key)?.replace(/^r[12]:/, "");
    return text !== undefined && text.slice(from - 1) === value.slice(from - 1);
  });
}
