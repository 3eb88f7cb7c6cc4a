import { entryOf } from "../field.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";
import { nonceOf, type Request } from "./request.ts";
import { type Stored, standsFor } from "./standing.ts";
import { RequestTrail } from "./trail.ts";

/** What is known of each round: its records go by nonce, because the library draws a new nonce for each. */
export class Rounds {
  protected readonly world: World;
  readonly #trails = new Map<string, Map<Server, RequestTrail>>();
  /** What the first acquire of a nonce was to store. */
  protected readonly stored = new Map<string, Stored>();

  constructor(world: World) {
    this.world = world;
  }

  /** How many endpoints the process knows to have granted, and refused, the round of a nonce; `byLock`: for a lock. */
  acquireVotes(nonce: string): { granted: number; refused: number; byLock: number } {
    return {
      byLock: this.#count(nonce, ({ refusedByLock }) => refusedByLock),
      granted: this.#count(nonce, ({ acquireGranted }) => acquireGranted === true),
      refused: this.#count(nonce, ({ acquireGranted }) => acquireGranted === false),
    };
  }

  /** What is known of a nonce at each endpoint that was sent anything of it. */
  trailsOf(nonce: string): RequestTrail[] {
    return [...(this.#trails.get(nonce)?.values() ?? [])];
  }

  #count(nonce: string, isTrue: (trail: RequestTrail) => boolean): number {
    return this.trailsOf(nonce).filter(isTrue).length;
  }

  /**
   * On how many endpoints a release has removed the value, and on how many one did not find it, or had nothing to release; and
   * how many have answered that. One may have done both.
   */
  releases(nonce: string): Record<"freed" | "gone" | "answeredFreed" | "answeredGone", number> {
    const owedNothing = this.world.servers.filter(
      (server) => this.#trails.get(nonce)?.get(server)?.isOwedNothing ?? true,
    ).length;
    return {
      freed: this.#count(nonce, ({ freed }) => freed),
      gone: this.#count(nonce, ({ foundGone }) => foundGone) + owedNothing,
      answeredFreed: this.#count(nonce, ({ answeredFreed }) => answeredFreed),
      answeredGone: this.#count(nonce, ({ answeredGone }) => answeredGone) + owedNothing,
    };
  }

  /** Whether the holder of a nonce has put its value back on a server. */
  isRestored(nonce: string, server: Server): boolean {
    return this.#trails.get(nonce)?.get(server)?.restored ?? false;
  }

  /** By server: for how many ms of true time the value of a nonce yet stands there, at these keys if they are given. */
  standing(nonce: string, keys?: readonly string[]): number[] {
    const stored = this.stored.get(nonce);
    if (!stored) return [];
    return this.world.servers.map((server) => standsFor(server, stored, keys));
  }

  /** Whether the value of a nonce is a member of a set. */
  isMember(nonce: string): boolean {
    return this.stored.get(nonce)?.isMember === true;
  }

  /** How many releases of a nonce were sent. */
  releasesSent(nonce: string): number {
    return this.trailsOf(nonce).reduce((sum, { releases }) => sum + releases, 0);
  }

  /** How many extensions of a nonce were sent to the endpoint that got most. */
  extensionsSent(nonce: string): number {
    return Math.max(0, ...this.trailsOf(nonce).map(({ extensions }) => extensions));
  }

  /**
   * Checks that every round was bounded, and that nothing was left standing on an endpoint.
   *
   * @param kept nonces that their holders meant never to release
   */
  checkAtEnd(kept: ReadonlySet<string>): void {
    for (const [nonce, trails] of this.#trails) {
      for (const trail of trails.values()) {
        this.#checkRequests(trail);
        if (!kept.has(nonce)) this.#checkRolledBack(nonce, trail);
      }
    }
  }

  #checkRequests({ process, server, acquires, fenceRaises }: RequestTrail): void {
    // EVALSHA, once more after another call's EVAL has failed, then EVAL; or a native command, and the script where that
    // command is unknown.
    this.world.check(
      "requests are bounded",
      acquires <= 3 && fenceRaises <= 3,
      () =>
        `${process.name} sent ${acquires} acquires and ${fenceRaises} fence raises of one round to ${server.name}`,
    );
  }

  #checkRolledBack(nonce: string, trail: RequestTrail): void {
    const { process, server } = trail;
    // Who has died rolls nothing back, and a completed record is the result.
    if (!process.alive || !trail.acquireExecuted || trail.completed) return;
    // An acquire that its rollback has overtaken is rolled back once more, when its answer or its timeout comes.
    this.world.check(
      "nothing is abandoned",
      trail.releases > 0 && !(trail.releaseDue && trail.standing),
      () => `${process.name} left something on ${server.name} and never rolled it back (${nonce})`,
      // Where nobody repeats requests, a refusal proves that the endpoint has stored nothing.
      trail.acquireGranted === false ? undefined : [],
    );
  }

  protected trail(process: Process, server: Server, request: Request): RequestTrail {
    const trails = entryOf(this.#trails, nonceOf(request.value), () => new Map());
    return entryOf(trails, server, () => new RequestTrail(process, server));
  }
}
