import type { Command } from "../../src/endpoint.ts";
import { Announcements } from "./announcements.ts";
import type { Process } from "./process.ts";
import { nonceOf, type Request } from "./request.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

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
  /** When it was renewed there for the first time. */
  renewed: number | undefined;
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
    if (request.operation === "take" && request.value.startsWith("C1")) trail.completed = true;
    else if (request.operation === "take") {
      trail.takes += 1;
      // A good deal less than that: timers fire early, and clocks may be fast.
      trail.heardUntil ??= this.#world.now + 0.8 * process.timeout - 5;
      const nonce = nonceOf(request.value);
      // A script's text may be sent long after its hash, when another round has begun.
      if (this.#rounds.has(nonce)) return;
      this.#rounds.add(nonce);
      for (const key of [...request.keys, ...(request.about ? [request.about] : [])]) {
        this.#last.set(`${process.name} ${key}`, nonce);
      }
    } else if (request.raises) trail.raises += 1;
    else if (request.operation === "renew") trail.renewals += 1;
    else if (request.operation === "drop") {
      trail.drops += 1;
      trail.owed = false;
    }
    if (request.operation === "renew" && command.some((word) => String(word).startsWith("C1 "))) {
      trail.completed = true;
    }
  }

  /** @param copy which execution of the same request it is, the first being 0 */
  executed(process: Process, server: Server, request: Request, granted: boolean, copy: number): void {
    if (request.operation === "announce") {
      this.announcements.executed(server, request, granted);
      return;
    }
    if (request.operation === "drop" && granted) this.announcements.dropped(server, request);
    const trail = this.#trail(process, server, request);
    if (request.operation === "drop") {
      trail.dropped = true;
      trail.standing = false;
    }
    if (request.operation === "renew" && granted && request.from === 1 && trail.dropped && !trail.standing) {
      this.#world.violate(
        "withdrawn stays withdrawn",
        `${server.name} renewed ${request.keys} for ${process.name} after the withdrawal`,
      );
    }
    if (request.operation === "renew" && granted) {
      trail.renewed ??= this.#world.now;
      for (const key of request.keys) this.#renewals.set(key, this.#world.now);
    }
    // An owner's take may be granted because the owner holds it already: then this value is nowhere.
    if (request.operation !== "take" || !granted || request.from > 1) return;
    trail.taken = true;
    trail.standing = true;
    // Whether or not somebody still waits for it: the request ends by an answer or by its timeout, and then a drop follows.
    if (copy === 0 && this.#world.now < trail.heardUntil!) trail.owed = true;
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
    if (request.operation === "drop") trail[granted ? "freed" : "gone"] = true;
    if (request.operation !== "take") return;
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

  /** The nonce of the last round of a process for a key. */
  lastRound(process: Process, key: string): string | undefined {
    return this.#last.get(`${process.name} ${key}`);
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
