import type { Command } from "../../../src/endpoints/endpoint.ts";
import { Announcements } from "./announcements.ts";
import type { Process } from "./process.ts";
import { nonceOf, type Request } from "./request.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

/** How often a result may be sent to a server that refuses it for its size. */
const mostUploads = 8;

/** What passed between a client and one endpoint about one grant. */
interface Trail {
  readonly process: Process;
  readonly server: Server;
  takes: number;
  raises: number;
  renewals: number;
  drops: number;
  /** Drops that were executed, in an order that matters only against takes. */
  dropped: boolean;
  /** A take was executed and left the value there. */
  taken: boolean;
  /** The same, and no drop was executed since. */
  standing: boolean;
  /** The client knows that it stands, or hears what becomes of it, and has sent no drop since. */
  owed: boolean;
  /** Until when the client hears what becomes of its take; undefined: it has sent none. */
  heardUntil: number | undefined;
  /** Whether the client was told of a take that it was granted, of a drop that it was, and that it was not. */
  take: boolean | undefined;
  freed: boolean;
  gone: boolean;
  /** A drop took it from where it stood; undefined: of what is no member nobody remembers that. */
  wasFreed: boolean | undefined;
  /** When it was renewed there for the first time. */
  renewed: number | undefined;
  /** Its holder has put it back where it was lost. */
  restored: boolean;
  /** A completed record took the place of the pending one, or was sent to do so. */
  completed: boolean;
}

/**
 * Watches what the library sends, what becomes of it, and what it is told; keeps book by nonce, because the
 * library draws a new one for each round.
 */
export class Wire {
  readonly #world: World;
  /** By nonce, then by server. */
  readonly #trails = new Map<string, Map<Server, Trail>>();
  readonly #rounds = new Set<string>();
  /** The nonce of the last round of a process for a key. */
  readonly #last = new Map<string, string>();

  /** When a key was last renewed anywhere. */
  readonly #renewals = new Map<string, number>();

  /** By server, key and name: who announced a writer there last, and when. */
  readonly #writers = new Map<string, { readonly process: Process; readonly at: number }>();
  /** By token of a run and server: how many uploads of its result the server refused for their size. */
  readonly #uploads = new Map<string, number>();
  /** By token of a run: the longest ttl, in ms, that its claim was sent with. */
  readonly #claims = new Map<string, number>();

  /** What debounced calls announce. */
  readonly announcements: Announcements;

  constructor(world: World) {
    this.#world = world;
    this.announcements = new Announcements(world);
  }

  sent(process: Process, server: Server, request: Request, command: Command): void {
    if (request.operation === "announce") {
      this.announcements.sent(process, request);
      return;
    }
    const trail = this.#trail(process, server, request);
    const completes = command.some((word) => /^[CN]1 /.test(String(word)));
    if (request.value.startsWith("P1 ") && !completes && request.operation !== "release") {
      const nonce = nonceOf(request.value);
      this.#claims.set(nonce, Math.max(this.#claims.get(nonce) ?? 0, request.ttl ?? 0));
    }
    if (request.operation === "acquire" && completes) trail.completed = true;
    else if (request.operation === "acquire") {
      trail.takes += 1;
      // A good deal less than that: timers fire early, and clocks may be fast.
      // Nor is an answer waited for that comes when what it grants is over.
      const timeout = Math.min(process.timeout, request.ttl ?? Number.POSITIVE_INFINITY);
      trail.heardUntil ??= this.#world.now + 0.8 * timeout - 5;
      const nonce = nonceOf(request.value);
      // A script's text may be sent long after its hash, when another round has begun.
      if (this.#rounds.has(nonce)) return;
      this.#rounds.add(nonce);
      for (const key of [...request.keys, ...(request.about ? [request.about] : [])]) {
        this.#last.set(`${process.name} ${key}`, nonce);
      }
    } else if (request.raises) trail.raises += 1;
    else if (request.operation === "extend") trail.renewals += 1;
    else if (request.operation === "release") {
      trail.drops += 1;
      trail.owed = false;
    }
    if (request.operation === "extend" && completes) trail.completed = true;
  }

  /** @param copy which execution of the same request it is, the first being 0 */
  executed(process: Process, server: Server, request: Request, granted: boolean, copy: number): void {
    if (request.operation === "announce") {
      this.announcements.executed(server, request, granted);
      return;
    }
    if (request.operation === "release" && granted) this.announcements.dropped(server, request);
    const trail = this.#trail(process, server, request);
    if (request.announces) {
      const { key, id } = request.announces;
      this.#writers.set(`${server.name} ${key} ${id}`, { process, at: this.#world.now });
    }
    if (request.operation === "release") {
      trail.dropped = true;
      trail.standing = false;
      if (request.isMember && granted) trail.wasFreed = true;
    }
    if (request.operation === "extend" && granted && request.from === 1 && trail.dropped && !trail.standing) {
      this.#world.violate(
        "withdrawn stays withdrawn",
        `${server.name} renewed ${request.keys} for ${process.name} after the withdrawal`,
      );
    }
    if (request.operation === "extend" && granted) {
      trail.renewed ??= this.#world.now;
      for (const key of request.keys) this.#renewals.set(key, this.#world.now);
    }
    // An owner's take may be granted because the owner holds it already: then this value is nowhere.
    if (request.operation !== "acquire" && request.operation !== "restore") return;
    if (!granted || request.from > 1) return;
    trail.taken = true;
    trail.standing = true;
    trail.restored ||= request.operation === "restore";
    // Whether or not somebody still waits for it: the request ends by an answer or by its timeout, and then a drop follows.
    if (request.operation === "acquire" && copy === 0 && this.#world.now < trail.heardUntil!)
      trail.owed = true;
    if (trail.dropped && request.tombstone !== undefined && copy === 0) {
      this.#world.violate(
        "withdrawn stays withdrawn",
        `${server.name} granted ${request.keys} to ${process.name} after the withdrawal`,
      );
    }
  }

  answered(process: Process, server: Server, request: Request, granted: boolean): void {
    if (request.operation === "announce") {
      this.announcements.answered(server, request, granted);
      return;
    }
    const trail = this.#trail(process, server, request);
    // Of two drops the later one finds nothing, and either may be the one that is answered first.
    if (request.operation === "release") trail[granted ? "freed" : "gone"] = true;
    // What was put back needs no second drop: the release that overtakes the request leaves its tombstone.
    if (request.operation !== "acquire") return;
    trail.take = granted;
    if (granted && trail.standing) trail.owed = true;
  }

  /** How many endpoints told the process that they granted, and that they refused, the round of a nonce. */
  takes(nonce: string): { granted: number; refused: number } {
    const trails = [...(this.#trails.get(nonce)?.values() ?? [])];
    return {
      granted: trails.filter(({ take }) => take === true).length,
      refused: trails.filter(({ take }) => take === false).length,
    };
  }

  /** How many told it that they freed it, that there was nothing to free, and either of the two. */
  drops(nonce: string): { freed: number; gone: number; answered: number } {
    const trails = [...(this.#trails.get(nonce)?.values() ?? [])];
    return {
      freed: trails.filter(({ freed }) => freed).length,
      gone: trails.filter(({ gone }) => gone).length,
      answered: trails.filter(({ freed, gone }) => freed || gone).length,
    };
  }

  /** Whether the holder of a nonce has put its value back at a server. */
  isRestored(nonce: string, server: Server): boolean {
    return this.#trails.get(nonce)?.get(server)?.restored ?? false;
  }

  /** On how many endpoints a drop has taken a member from where it stood. */
  freed(nonce: string): number {
    return [...(this.#trails.get(nonce)?.values() ?? [])].filter(({ wasFreed }) => wasFreed).length;
  }

  /** Who announced a writer on a server last, and when; undefined: nobody did. */
  writer(server: Server, key: string, id: string): { process: Process; at: number } | undefined {
    return this.#writers.get(`${server.name} ${key} ${id}`);
  }

  /** The nonce of the last round of a process for a key. */
  lastRound(process: Process, key: string): string | undefined {
    return this.#last.get(`${process.name} ${key}`);
  }

  /** A few times at most: where other endpoints fail as well, a retry may find enough that take it. */
  refusedForSize(process: Process, server: Server, command: Command): void {
    const record = command.map(String).find((word) => word.startsWith("C1 ")) ?? "";
    const upload = `${nonceOf(record)} ${server.name}`;
    const times = (this.#uploads.get(upload) ?? 0) + 1;
    this.#uploads.set(upload, times);
    if (times !== mostUploads + 1) return;
    const detail = `${process.name} sent a result to ${server.name} that it refused for its size ${mostUploads} times`;
    this.#world.violate("requests are bounded", detail);
  }

  /** The longest ttl, in ms, that a run's claim was sent with. */
  longestClaim(token: string): number {
    return this.#claims.get(token) ?? 0;
  }

  /** How many endpoints have renewed a grant, and when the first of them did so for the first time. */
  renewed(nonce: string): { endpoints: number; first: number } {
    const trails = [...(this.#trails.get(nonce)?.values() ?? [])];
    const times = trails.flatMap(({ renewed = [] }) => renewed);
    return { endpoints: times.length, first: Math.min(...times) };
  }

  /** When a key was last renewed anywhere. */
  lastRenewal(key: string): number {
    return this.#renewals.get(key) ?? Number.NEGATIVE_INFINITY;
  }

  /** How many renewals of a grant were sent to the endpoint that got most. */
  renewals(nonce: string): number {
    return Math.max(0, ...[...(this.#trails.get(nonce)?.values() ?? [])].map(({ renewals }) => renewals));
  }

  /**
   * Looks at everything at the end.
   *
   * @param kept nonces of grants that their holders meant to keep
   */
  conclude(kept: ReadonlySet<string>): void {
    for (const [nonce, trails] of this.#trails) {
      for (const trail of trails.values()) {
        const { process, server, takes, raises } = trail;
        // EVALSHA, then EVAL; or a native command, and where it is unknown the script.
        if (takes > 3 || raises > 2) {
          this.#world.violate(
            "requests are bounded",
            `${process.name} sent ${takes} takes and ${raises} raises of one round to ${server.name}`,
          );
        }
        if (!process.alive || !trail.taken || trail.completed || kept.has(nonce)) continue;
        // Of a take that its withdrawal has overtaken the client hears by its timeout, and withdraws it once more.
        if (trail.drops > 0 && !(trail.owed && trail.standing)) continue;
        this.#world.violate(
          "nothing is abandoned",
          `${process.name} took something at ${server.name} and never withdrew it (${nonce})`,
          // A refusal proves that nothing was taken, where nobody repeats requests.
          trail.take === false ? undefined : [],
        );
      }
    }
  }

  #trail(process: Process, server: Server, { value }: Request): Trail {
    const nonce = nonceOf(value);
    let trails = this.#trails.get(nonce);
    if (!trails) {
      trails = new Map();
      this.#trails.set(nonce, trails);
    }
    let trail = trails.get(server);
    if (!trail) {
      trail = {
        process,
        server,
        takes: 0,
        raises: 0,
        renewals: 0,
        drops: 0,
        dropped: false,
        taken: false,
        standing: false,
        owed: false,
        heardUntil: undefined,
        take: undefined,
        freed: false,
        gone: false,
        restored: false,
        wasFreed: undefined,
        renewed: undefined,
        completed: false,
      };
      trails.set(server, trail);
    }
    return trail;
  }
}

/** Whether a reply says that it was done. */
export function isGranted(request: Request, command: Command, reply: unknown): boolean {
  if (Array.isArray(reply)) return reply[0] === request.value;
  if (command.includes("GET")) return reply === null || reply === request.value;
  return reply === "OK" || reply === 1;
}
