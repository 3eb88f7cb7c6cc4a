import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";
import { ByNonce } from "./by-nonce.ts";
import { nonceOf, type Request } from "./request.ts";
import { type Stored, standsFor } from "./standing.ts";
import { RequestTrail } from "./trail.ts";

/** What is known of each round: its records go by nonce, because the library draws a new nonce for each. */
export class Rounds {
  protected readonly world: World;
  protected readonly trails = new ByNonce<Server, RequestTrail>();
  /** What the first acquire of a nonce was to store. */
  protected readonly stored = new Map<string, Stored>();

  constructor(world: World) {
    this.world = world;
  }

  /** How many endpoints the process knows to have granted, and refused, the round of a nonce; `byLock`: for a lock. */
  acquireVotes(nonce: string): { granted: number; refused: number; byLock: number } {
    return {
      byLock: this.trails.count(nonce, ({ refusedByLock }) => refusedByLock),
      granted: this.trails.count(nonce, ({ acquireGranted }) => acquireGranted === true),
      refused: this.trails.count(nonce, ({ acquireGranted }) => acquireGranted === false),
    };
  }

  /** How many endpoints answered a release with "freed", and with "gone" or with nothing to release. One may have done both. */
  releaseVotes(nonce: string): { freed: number; gone: number } {
    return {
      freed: this.trails.count(nonce, ({ answeredFreed }) => answeredFreed),
      gone: this.trails.count(nonce, ({ answeredGone }) => answeredGone) + this.#owedNothing(nonce),
    };
  }

  /** Whether the holder of a nonce has put its value back on a server. */
  isRestored(nonce: string, server: Server): boolean {
    return this.trails.find(nonce, server)?.restored ?? false;
  }

  /** On how many endpoints a release has removed the value, and on how many one did not find it. */
  releasesExecuted(nonce: string): { freed: number; gone: number } {
    return {
      freed: this.trails.count(nonce, ({ freed }) => freed),
      gone: this.trails.count(nonce, ({ foundGone }) => foundGone) + this.#owedNothing(nonce),
    };
  }

  /** How many endpoints have freed something at an operator's request, and how many have answered it. */
  frees(nonce: string): { freed: number; answered: number } {
    return {
      freed: this.trails.count(nonce, ({ freed }) => freed),
      answered: this.trails.count(nonce, ({ answeredFree }) => answeredFree),
    };
  }

  /** At how many endpoints a release has nothing to do, because nothing was sent there, or it was refused. */
  #owedNothing(nonce: string): number {
    return this.world.servers.filter((server) => this.trails.find(nonce, server)?.isOwedNothing ?? true)
      .length;
  }

  /** On how many endpoints a request to extend or verify has found the value since `time`. */
  stoodSince(nonce: string, time: number): number {
    return this.trails.count(nonce, ({ stoodAt = Number.NEGATIVE_INFINITY }) => stoodAt >= time);
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

  /** How many endpoints have extended a nonce, and when the first of them did so for the first time. */
  extensionsExecuted(nonce: string): { endpoints: number; first: number } {
    const times = this.trails.all(nonce).flatMap(({ firstExtended = [] }) => firstExtended);
    return { endpoints: times.length, first: Math.min(...times) };
  }

  /** How many releases of a nonce were sent. */
  releasesSent(nonce: string): number {
    return this.trails.all(nonce).reduce((sum, { releases }) => sum + releases, 0);
  }

  /** How many extensions of a nonce were sent to the endpoint that got most. */
  extensionsSent(nonce: string): number {
    return Math.max(0, ...this.trails.all(nonce).map(({ extensions }) => extensions));
  }

  /**
   * Checks that every round was bounded, and that nothing was left standing on an endpoint.
   *
   * @param kept nonces that their holders meant never to release
   */
  checkAtEnd(kept: ReadonlySet<string>): void {
    for (const { nonce, trail } of this.trails) {
      this.#checkRequests(trail);
      if (!kept.has(nonce)) this.#checkRolledBack(nonce, trail);
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
    return this.trails.of(nonceOf(request.value), server, () => new RequestTrail(process, server));
  }
}
