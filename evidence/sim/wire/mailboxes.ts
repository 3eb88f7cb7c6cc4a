import type { Reply } from "../../../local/src/memory/index.ts";
import { entryOf, quorumOf } from "../field.ts";
import { type Assumption, invariants } from "../world/invariants.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";

// What mailboxes do on the wire: who has had a turn, which messages stand where, and which are remembered as handled.

/** A message's id as endpoints know it, and the key that says that it was handled. */
interface Named {
  readonly id: string;
  readonly mark: string;
}

/** One request of the script of mailboxes. */
export interface Mail {
  readonly op: string;
  readonly order: string;
  readonly values: string;
  /** The message that a `post` brings. */
  readonly posts?: (Named & { readonly call: string }) | undefined;
  readonly closes: boolean;
  /** Which one of its turn's steps it is; 0: none. */
  readonly number: number;
  /** Those that are handled, or dropped. */
  readonly done: readonly Named[];
  readonly drops?: string | undefined;
  readonly puts: readonly Named[];
  /** How many it leaves to another turn. */
  readonly left: readonly string[];
}

/** Reads a request by the words of its command. */
export function readMail(keys: readonly string[], args: readonly string[]): Mail {
  const [op = ""] = args;
  const named = (ids: readonly string[], from = 0) =>
    ids.map((id, index) => ({ id, mark: keys[4 + from + index]! }));
  const none = {
    op,
    order: keys[1]!,
    values: keys[2]!,
    closes: false,
    number: 0,
    done: [],
    puts: [],
    left: [],
  };
  if (op === "end") return { ...none, done: named(args.slice(5)) };
  if (op === "post") {
    const [id, call = "", , drops] = args.slice(8);
    const posts = id === undefined ? undefined : { ...named([id])[0]!, call };
    return { ...none, posts, drops, done: drops === undefined ? [] : named([drops], 1) };
  }
  if (op !== "step") return none;
  const [done = 0, puts = 0, left = 0] = args.slice(7, 10).map(Number);
  const ids = args.slice(11);
  const leftIds = ids.slice(done + puts, done + puts + left);
  const more = { closes: args[6] === "1", number: Number(args[5]), left: leftIds };
  return {
    ...none,
    ...more,
    done: named(ids.slice(0, done)),
    puts: named(ids.slice(done, done + puts), done),
  };
}

/** One attempt to get the turn, at one endpoint. */
class Place {
  isGranted = false;
  /** A request was sent that gives it back. */
  isReturned = false;
  isRefused = false;
  isEnded = false;
  isClosed = false;
  /** The last step. */
  at = 0;
  /** Messages that have come since the holder has last looked. */
  arrived = 0;
}

/** One attempt to get the turn. */
interface Attempt {
  readonly process: Process;
  /** When its first request was sent, in virtual ms. */
  readonly sent: number;
  readonly places: Map<Server, Place>;
  /** Since when a quorum has closed it. */
  closedAt: number | undefined;
}

/** A call of `post`: by attempt and endpoint, who had the turn when its message was stored. */
interface Posting {
  readonly call: string;
  readonly stored: Map<string, Map<Server, string>>;
}

/** What is known of a message, from every call that has posted it. Times are virtual ms; Infinity: never. */
class ShownMessage {
  /** The endpoints that remember that it is done, and since when a quorum does. */
  readonly marked = new Set<Server>();
  markedAt = Infinity;
  /** When it was dropped for a newer one. */
  droppedAt = Infinity;
  /** Since when a holder puts it at endpoints, as it has found it at too few of them. */
  putAt = Infinity;
  /** The turns that it has waited in, at some endpoint. */
  readonly turns = new Set<string>();
}

/** Between which process and which endpoint a request is. */
interface Way {
  readonly process: Process;
  readonly server: Server;
}

interface LastPost {
  readonly stored: number;
  readonly isHeld: boolean;
  readonly holder: string | undefined;
}

/** Observes the requests of mailboxes. There is one in a world. */
export class Mailboxes {
  readonly #world: World;
  readonly #attempts = new Map<string, Attempt>();
  readonly #last = new Map<Process, string>();
  /** The last call, by process and id. */
  readonly #postings = new Map<string, Posting>();
  readonly #calls = new Set<string>();
  readonly #messages = new Map<string, ShownMessage>();
  /** The ids that wait, by endpoint. */
  readonly #waiting = new Map<Server, readonly string[]>();

  constructor(world: World) {
    this.#world = world;
  }

  sent({ process, server }: Way, token: string, mail: Mail): void {
    if (mail.op === "end" && this.#attempts.has(token)) this.#placeOf(server, token).isReturned = true;
    for (const { id } of mail.puts)
      this.#message(id).putAt = Math.min(this.#message(id).putAt, this.#world.now);
    if (mail.op !== "post") return;
    // A request may be sent again, for example because a server has forgotten the script.
    if (!this.#attempts.has(token)) {
      this.#last.set(process, token);
      const { now } = this.#world;
      this.#attempts.set(token, { process, sent: now, places: new Map(), closedAt: undefined });
    }
    if (mail.drops !== undefined) {
      const dropped = this.#message(mail.drops);
      dropped.droppedAt = Math.min(dropped.droppedAt, this.#world.now);
    }
    const { posts } = mail;
    if (!posts) return;
    const key = `${process.name} ${posts.id}`;
    // Of an earlier call a request may be sent yet.
    if (this.#calls.has(posts.call)) return;
    this.#calls.add(posts.call);
    this.#postings.set(key, { call: posts.call, stored: new Map() });
  }

  executed(server: Server, token: string, mail: Mail, { reply, copy }: { reply: Reply; copy: number }): void {
    const [, state, holder] = reply as [string, string, string];
    if (state === "foreign") return;
    const attempt = this.#attempts.get(token);
    // A call that only looks has no attempt.
    if (!attempt) return;
    const place = this.#placeOf(server, token);
    for (const { id } of mail.done) this.#mark(server, id);
    if (mail.op === "post" && state === "stored") this.#stored(server, token, mail, holder);
    if (mail.op === "post") {
      this.#checkGrant(attempt, place, { state, granted: holder === token, copy, server });
    }
    if (mail.op === "end") place.isEnded = true;
    const now = server.execute(["ZRANGE", mail.order, 0, -1]) as string[];
    if (mail.op === "step") this.#stepped(server, attempt, mail, { state, waiting: now });
    this.#waiting.set(server, now);
    this.#checkExpiry(server, mail);
    this.#checkMarks(server, mail, now);
  }

  /** The last attempt of a process to get the turn. */
  lastAttempt(process: Process): string {
    return this.#last.get(process)!;
  }

  /** What is known of an attempt; undefined: there is none. */
  attempt(token: string): Readonly<Attempt> | undefined {
    return this.#attempts.get(token);
  }

  /** What endpoints have shown of a message. */
  shown(id: string): Readonly<ShownMessage> {
    return this.#message(`i${id}`);
  }

  /** In how many turns but this one a message has waited. */
  otherTurns(id: string, token: string): number {
    return [...this.#message(`i${id}`).turns].filter((other) => other !== token).length;
  }

  /**
   * What the last post of a message by a process has left behind: at how many endpoints one attempt has stored it, whether a
   * quorum has shown it who had the turn, and that holder, if it is another one.
   */
  lastPost(process: Process, id: string): LastPost {
    const attempts = [...(this.#postings.get(`${process.name} i${id}`)?.stored ?? [])];
    const quorum = quorumOf(this.#world.servers.length);
    const own = new Set(attempts.map(([token]) => token));
    const groups = attempts.flatMap(([, holders]) => {
      const names = [...holders.values()];
      return names.filter((name) => name && names.filter((other) => other === name).length >= quorum);
    });
    const stored = Math.max(0, ...attempts.map(([, holders]) => holders.size));
    return { stored, isHeld: groups.length > 0, holder: groups.filter((name) => !own.has(name)).at(-1) };
  }

  /** A process that lives has given back what endpoints have given it. */
  checkAtEnd(): void {
    for (const [token, { process, places }] of this.#attempts) {
      if (!process.alive) continue;
      for (const [server, { isGranted, isReturned, isClosed }] of places) {
        if (!isGranted) continue;
        const what = () =>
          `${process.name} has not given back the turn ${token.slice(0, 8)} that it has from ${server.name}`;
        this.#world.check("nothing is abandoned", isReturned || isClosed, what, []);
      }
    }
  }

  #placeOf(server: Server, token: string): Place {
    return entryOf(this.#attempts.get(token)!.places, server, () => new Place());
  }

  #message(id: string): ShownMessage {
    return entryOf(this.#messages, id, () => new ShownMessage());
  }

  #mark(server: Server, id: string): void {
    const message = this.#message(id);
    message.marked.add(server);
    if (message.marked.size < quorumOf(this.#world.servers.length)) return;
    message.markedAt = Math.min(message.markedAt, this.#world.now);
  }

  #stored(server: Server, token: string, { posts }: Mail, holder: string): void {
    const attempt = this.#attempts.get(token)!;
    if (posts) {
      const posting = this.#postings.get(`${attempt.process.name} ${posts.id}`)!;
      if (posting.call === posts.call) {
        const holders = posting.stored.get(token) ?? new Map<Server, string>();
        // A repetition that finds the turn free again takes nothing back of what was said.
        posting.stored.set(token, holders.set(server, holder || holders.get(server) || ""));
      }
      this.#message(posts.id).turns.add(holder);
    }
    if (holder === token) {
      for (const id of this.#waiting.get(server) ?? []) this.#message(id).turns.add(token);
      attempt.places.get(server)!.arrived = 0;
      return;
    }
    const others = this.#attempts.get(holder)?.places.get(server);
    if (others && posts) others.arrived += 1;
  }

  /** What was given back, or refused, is not taken by a request that comes late or twice. */
  #checkGrant(
    { process }: Attempt,
    place: Place,
    { state, granted, copy, server }: { state: string; granted: boolean; copy: number; server: Server },
  ): void {
    const what = () =>
      `${server.name} gives the turn to ${process.name}, which has given it back or was refused it`;
    const again: readonly Assumption[] = copy > 0 ? ["single execution"] : [];
    if (place.isEnded || place.isClosed) {
      const needs = [...invariants["rolled back stays rolled back"], ...again];
      this.#world.check("rolled back stays rolled back", !granted, what, needs);
    } else if (place.isRefused) {
      this.#world.check("nothing is abandoned", !granted, what, ["single execution"]);
    }
    // Whatever the first execution has taken, the second one has found that another has it, or nobody.
    if (!granted && (state === "stored" || state === "late")) place.isGranted = false;
    if (!granted) place.isRefused ||= state === "stored";
    // Nobody knows of a repetition: its ttl frees the turn.
    else if (copy === 0) place.isGranted = true;
  }

  #stepped(
    server: Server,
    attempt: Attempt,
    { closes, number, left }: Mail,
    { state, waiting }: { readonly state: string; readonly waiting: readonly string[] },
  ): void {
    const world = this.#world;
    const place = attempt.places.get(server)!;
    if (closes && place.arrived > 0) world.count("mailbox: posted during a close", place.arrived);
    if (closes && state === "open") world.count("mailbox: not closed");
    if (state === "open") Object.assign(place, { at: number, arrived: 0 });
    if (state !== "closed" || place.isClosed) return;
    place.isClosed = true;
    place.arrived = 0;
    const late = () => `${server.name} lets the turn go for step ${number}, after step ${place.at}`;
    world.check("what is held stands", place.at <= number, late, []);
    const unseen = waiting.filter((id) => !left.includes(id));
    const what = () => `${server.name} lets the turn go, and ${unseen} wait`;
    world.check("a close leaves nothing behind", unseen.length === 0, what);
    const closed = [...attempt.places.values()].filter(({ isClosed }) => isClosed);
    if (closed.length >= quorumOf(world.servers.length)) attempt.closedAt ??= world.now;
  }

  /** A message does not wait for longer than its value. */
  #checkExpiry(server: Server, { order, values }: Mail): void {
    const [orderTtl, valuesTtl] = [order, values].map((key) => Number(server.execute(["PTTL", key])));
    const what = () =>
      `at ${server.name} the order expires after ${orderTtl} ms, the values after ${valuesTtl} ms`;
    const isGood = orderTtl !== -1 && valuesTtl !== -1 && orderTtl! <= valuesTtl!;
    this.#world.check("every key expires", isGood, what, []);
  }

  /** What an endpoint remembers as handled does not wait there. */
  #checkMarks(server: Server, { posts, done, puts }: Mail, waiting: readonly string[]): void {
    for (const { id, mark } of [...(posts ? [posts] : []), ...done, ...puts]) {
      if (server.execute(["GET", mark]) === null) continue;
      const what = () => `${id} waits at ${server.name}, which knows that it is handled`;
      this.#world.check("a message is handled once", !waiting.includes(id), what);
    }
  }
}
