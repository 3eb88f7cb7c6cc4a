import type { Command } from "../../../src/index.ts";
import { entryOf } from "../field.ts";
import { invariants } from "../world/invariants.ts";
import type { Process } from "../world/process.ts";
import type { Server } from "../world/server.ts";
import type { World } from "../world/world.ts";
import { Announcements } from "./announcements.ts";
import { Mailboxes } from "./mailboxes.ts";
import { isCompletion, isCount, isMessage, nonceOf, type Request, successorOf } from "./request.ts";
import { Rounds } from "./rounds.ts";
import { type Snapshot, standsFor } from "./standing.ts";
import type { Execution, Look, RequestTrail } from "./trail.ts";
import type { WakeUps } from "./wake-ups.ts";

/** For how many ms every tombstone says what an end has found. */
const shortestMemory = 20_000;

/** How often a client may be told by one server that a result is too large. */
const mostUploads = 4;

/** Whether a request is to get the turn of a mailbox, or to leave a message there. */
function isPost({ mail }: Request): boolean {
  return mail?.op === "post";
}

/** Observes every request and answer between clients and endpoints. */
export class Wire extends Rounds {
  readonly #wakeUps: WakeUps;
  /** The nonce of the last round and when it began, by process and key. */
  readonly #last = new Map<string, { readonly nonce: string; readonly at: number }>();
  /** When a key was last extended on any server. */
  readonly #extensions = new Map<string, number>();
  /** The last announcement of a waiting writer, by server, key and name. */
  readonly #writers = new Map<string, { readonly process: Process; readonly at: number }>();
  /** How many uploads of a run's result a server refused for their size, by the run's token and server. */
  readonly #uploads = new Map<string, number>();
  readonly #looks: Look[] = [];
  /** By key: when a stored result or a count of runs was last removed on any server. */
  readonly #removals = new Map<string, number>();
  /** By key: the runs that were counted. */
  readonly #counted = new Map<string, Set<string>>();
  /** The announcements of debounced calls. */
  readonly announcements: Announcements;
  readonly mailboxes: Mailboxes;

  constructor(world: World, wakeUps: WakeUps) {
    super(world);
    this.#wakeUps = wakeUps;
    this.announcements = new Announcements(world);
    this.mailboxes = new Mailboxes(world);
  }

  /**
   * A client sends a request.
   *
   * @returns the request; a claim counts as a restore if the client knows that the server has lost the value
   */
  sent(process: Process, server: Server, request: Request, command: Command): Request {
    if (request.operation === "announce") {
      this.announcements.sent(process, request);
      return request;
    }
    if (request.mail) {
      this.mailboxes.sent({ process, server }, request.value, request.mail);
      if (isPost(request)) this.#wakeUps.asked(process, request.value);
      // It has the turn.
      if (request.mail.op === "step") this.#wakeUps.served(process);
    }
    if (isCount(request) || isMessage(request)) return request;
    const trail = this.trail(process, server, request);
    const restores = request.operation === "claim" && trail.answeredLost && !isCompletion(command);
    const judged: Request = restores ? { ...request, operation: "restore" } : request;
    this.#noteSent(trail, judged, command);
    const successor = successorOf(judged);
    if (successor) this.#successorSent(process, trail, successor);
    return judged;
  }

  #noteSent(trail: RequestTrail, request: Request, command: Command): void {
    const { operation } = request;
    const { process } = trail;
    if (operation === "peek") this.#wakeUps.asked(process, request.value);
    if (operation === "free") this.#noteRound(process, `free ${request.keys[0]}`, nonceOf(request.value));
    if (isCompletion(command)) trail.completed = true;
    else if (operation === "claim") this.#claimSent(trail, request);
    if (operation === "end") {
      trail.releases += 1;
      trail.releaseDue = false;
    }
    if (operation === "keep") trail[request.raises ? "fenceRaises" : "extensions"] += 1;
  }

  /** What it replaces counts as released by it. The trail of what it puts there is this process's, not the giver's. */
  #successorSent(process: Process, replaced: RequestTrail, successor: Request): void {
    replaced.releases += 1;
    replaced.releaseDue = false;
    this.stored.set(nonceOf(successor.value), successor);
    this.trail(process, replaced.server, successor).succeeds = true;
  }

  #claimSent(trail: RequestTrail, request: Request): void {
    const { process } = trail;
    this.#wakeUps.asked(process, request.value);
    trail.acquires += 1;
    // The client does not wait for an answer that comes when the ttl is over.
    const timeout = Math.min(process.timeout, request.ttl ?? Number.POSITIVE_INFINITY);
    // Timers fire early.
    trail.answerAwaitedUntil ??= this.world.now + timeout / process.rate - 2;
    const nonce = nonceOf(request.value);
    // A script's text may be sent long after its hash, when another round has begun.
    if (this.stored.has(nonce)) return;
    this.stored.set(nonce, request);
    for (const key of [...request.keys, ...(request.about ? [request.about] : [])]) {
      this.#noteRound(process, key, nonce);
    }
  }

  #noteRound({ name }: Process, key: string, nonce: string): void {
    this.#last.set(`${name} ${key}`, { nonce, at: this.world.now });
  }

  /** The client does not wait any longer: of its timeout a part had passed before the request was sent. */
  givenUp(process: Process, server: Server, request: Request): void {
    if (request.operation !== "claim" || isCount(request) || isMessage(request)) return;
    const trail = this.trail(process, server, request);
    trail.answerAwaitedUntil = Math.min(trail.answerAwaitedUntil ?? Number.POSITIVE_INFINITY, this.world.now);
  }

  /** A client learns that an endpoint did not know the script of a request, which is as if it had not been sent. */
  scriptUnknown(process: Process, server: Server, request: Request): void {
    if (request.operation !== "end" || isCount(request) || isMessage(request)) return;
    this.trail(process, server, request).releases -= 1;
  }

  /**
   * An endpoint executed a request.
   *
   * @param execution see {@link Execution}
   */
  executed(process: Process, server: Server, request: Request, execution: Execution): void {
    if (isMessage(request)) return;
    const { granted } = execution;
    const { operation } = request;
    if (operation === "announce") {
      this.announcements.executed(server, request, granted);
      return;
    }
    if (request.mail) {
      this.mailboxes.executed(server, request.value, request.mail, execution);
      return;
    }
    if (operation === "end" && execution.stood && !execution.stands) this.#removed(request);
    if (isCount(request)) {
      if (granted && operation !== "end") this.#counts(request);
      return;
    }
    const trail = this.trail(process, server, request);
    if (operation === "peek" && execution.found) {
      const { now } = this.world;
      this.#looks.push({ process, server, key: request.keys[0]!, at: now, ...execution.found });
    }
    if (operation === "free" && execution.found) this.#freed(trail, execution.found);
    if (operation === "end" && request.own[0]?.startsWith("P1 ")) {
      const what = () => `${process.name} removes a run of ${trail.process.name} that is under way`;
      this.world.check("a run is not forgotten", trail.process === process, what);
    }
    if (request.announces) {
      const { key, id } = request.announces;
      this.#writers.set(`${server.name} ${key} ${id}`, { process, at: this.world.now });
    }
    if (operation === "end") {
      this.#released(trail, request, execution);
      return;
    }
    const next = successorOf(request);
    const successor = next && this.trail(process, server, next);
    this.#checkRolledBackStays(trail, successor, request, execution);
    if (operation === "keep" && execution.stood) trail.stoodAt = this.world.now;
    const claims = operation === "claim" || operation === "restore";
    if (!granted && claims && execution.copy === 0) this.#claimRefused(trail, request);
    if (!granted) return;
    if (operation === "keep") this.#extensionGranted(trail, request);
    if (successor) {
      trail.standing = false;
      successor.acquireExecuted = true;
      successor.standing = true;
    }
    // A restore claims what was lost.
    if (claims) this.#claimGranted(trail, request, execution.copy);
  }

  /** An operator freed what was there, of any holder. */
  #freed(trail: RequestTrail, { text }: Snapshot): void {
    trail.freed ||= text !== undefined;
    trail.foundGone ||= text === undefined;
    if (text !== undefined) this.world.freed.add(nonceOf(text));
  }

  #removed({ keys, value }: Request): void {
    if (/^[CNA]1 /.test(value)) this.#removals.set(keys[0]!, this.world.now);
  }

  #counts({ keys, value, next }: Request): void {
    const [, token = ""] = (next?.[0] ?? value).split(" ");
    entryOf(this.#counted, keys[0]!, () => new Set()).add(token);
  }

  #released(
    trail: RequestTrail,
    { own, tombstone, next }: Request,
    { stood, stands, granted }: Execution,
  ): void {
    // It has named the result of a run, and this endpoint may still have the run's pending record.
    if (/^[CN]1 /.test(own[0]!) && !stood) return;
    trail.releaseExecuted = true;
    if (tombstone !== undefined) trail.tombstones.add(tombstone);
    const remembers = tombstone !== undefined && next !== undefined;
    if (remembers && trail.freedAt > this.world.now - shortestMemory) {
      const what = () => `${trail.server.name} does not remember that it has freed a value`;
      this.world.check("a quorum decides", granted, what, ["kept memory", "bounded drift"]);
    }
    if (remembers && stood && !stands) trail.freedAt = this.world.now;
    trail.standing = false;
    trail.freed ||= stood && !stands;
    trail.foundGone ||= !stood;
  }

  /**
   * A request that is executed after its rollback is not granted, where a tombstone or the value's absence shows it. The
   * tombstone of a handover is that of the nonce that it writes.
   */
  #checkRolledBackStays(
    trail: RequestTrail,
    successor: RequestTrail | undefined,
    { operation, keys, tombstone }: Request,
    { granted, copy, stood }: Execution,
  ): void {
    const { process, server } = trail;
    const isEnded = (successor ?? trail).releaseExecuted;
    // A record that was forgotten stands again where another call brings it from an endpoint that kept it.
    const isGone = operation === "keep" && !successor && !trail.standing && !stood;
    const { tombstones } = successor ?? trail;
    const isMarked =
      (operation !== "keep" || successor) && tombstone !== undefined && tombstones.has(tombstone);
    if (!isEnded || !(isGone || isMarked)) return;
    const needs = invariants["rolled back stays rolled back"];
    this.world.check(
      "rolled back stays rolled back",
      !granted,
      () => `${server.name} granted ${operation} ${keys} to ${process.name} after the rollback`,
      copy > 0 ? [...needs, "single execution"] : needs,
    );
  }

  #extensionGranted(trail: RequestTrail, request: Request): void {
    trail.firstExtended ??= this.world.now;
    for (const key of request.keys) this.#extensions.set(key, this.world.now);
  }

  #claimGranted(trail: RequestTrail, request: Request, copy: number): void {
    trail.acquireExecuted = true;
    trail.standing = true;
    trail.restored ||= request.operation === "restore";
    // Also where nobody waits for the answer: the request ends by an answer or its timeout, and a release follows. But
    // nobody knows of a repetition: its ttl frees the key.
    const awaited = this.world.now < (trail.answerAwaitedUntil ?? Number.NEGATIVE_INFINITY);
    if (request.operation === "claim" && copy === 0 && awaited) trail.releaseDue = true;
  }

  /** Asked again, an endpoint refuses what it had granted: it has lost that, unless it is what is in the way. */
  #claimRefused(trail: RequestTrail, request: Request): void {
    if (!trail.acquireExecuted || standsFor(trail.server, request) > 0) return;
    trail.acquireExecuted = false;
    trail.standing = false;
  }

  /** A client got an answer. `byLock`: a lock has refused a run. */
  answered(
    process: Process,
    server: Server,
    request: Request,
    { granted, byLock = false }: { readonly granted: boolean; readonly byLock?: boolean },
  ): void {
    if (request.operation === "announce") {
      this.announcements.answered(server, request, granted);
      return;
    }
    if (isPost(request) && !granted) this.#wakeUps.refused(process, request.value);
    if (isCount(request) || isMessage(request)) return;
    const trail = this.trail(process, server, request);
    // Of two releases the second one finds nothing, and either answer may be the first to arrive.
    if (request.operation === "end") trail[granted ? "answeredFreed" : "answeredGone"] = true;
    if (request.operation === "free") trail.answeredFree = true;
    if (request.operation === "peek") this.#wakeUps.refused(process, request.value);
    const successor = successorOf(request);
    if (request.operation === "keep" && granted) this.#taken(process, server, successor ?? request);
    else if (request.operation === "keep" && !successor) trail.answeredLost = true;
    // As of an acquire, a refusal proves that nothing was stored.
    else if (successor) this.trail(process, server, successor).acquireGranted ??= false;
    // What another has taken meanwhile cannot be put back: nothing stands there, and nothing is to be released.
    if (request.operation === "restore" && !granted) trail.acquireGranted = false;
    // A restored value needs no second release: one that overtakes the restore request leaves its tombstone.
    if (request.operation !== "claim") return;
    trail.acquireGranted = granted;
    if (!granted) this.#wakeUps.refused(process, request.value);
    trail.refusedByLock = byLock;
    if (granted && trail.standing) trail.releaseDue = true;
  }

  /** A client knows that a nonce that replaces another one stands. */
  #taken(process: Process, server: Server, request: Request): void {
    const trail = this.trail(process, server, request);
    if (!trail.succeeds) return;
    trail.acquireGranted = true;
    trail.releaseDue ||= trail.standing;
  }

  /** A client got no usable answer. */
  failed(process: Process, request: Request): void {
    const { operation } = request;
    if (operation === "claim" || operation === "peek" || isPost(request)) this.#wakeUps.failed(process);
  }

  /** What a process's requests to inspect a key met since `time`. */
  looksSince(process: Process, key: string, time: number): Look[] {
    return this.#looks.filter((look) => look.process === process && look.key === key && look.at >= time);
  }

  /** When a result or a count of a key was last removed on any server; -Infinity: never. */
  lastRemoval(key: string): number {
    return this.#removals.get(key) ?? Number.NEGATIVE_INFINITY;
  }

  /** How many runs of a key were counted on any server. */
  runsCounted(key: string): number {
    return this.#counted.get(key)?.size ?? 0;
  }

  /** The last announcement of a waiting writer on a server; undefined: there was none. */
  announcedWriter(server: Server, key: string, id: string): { process: Process; at: number } | undefined {
    return this.#writers.get(`${server.name} ${key} ${id}`);
  }

  /** The nonce of the last round of a process for a key, if it began after `since`. */
  lastRound(process: Process, key: string, since = Number.NEGATIVE_INFINITY): string | undefined {
    const last = this.#last.get(`${process.name} ${key}`);
    return last && last.at >= since ? last.nonce : undefined;
  }

  /**
   * A client got the answer that a server refuses a result for its size. A few more are allowed: of requests that were
   * under way.
   */
  refusedForSize(process: Process, server: Server, command: Command): void {
    const record = command.map(String).find((word) => word.startsWith("C1 ")) ?? "";
    const upload = `${nonceOf(record)} ${server.name}`;
    const times = (this.#uploads.get(upload) ?? 0) + 1;
    this.#uploads.set(upload, times);
    const detail = () =>
      `${process.name} sent a result to ${server.name} that it was told ${mostUploads} times is too large`;
    this.world.check("requests are bounded", times <= mostUploads, detail);
  }

  /** When a key was last extended on any server; -Infinity: never. */
  lastExtension(key: string): number {
    return this.#extensions.get(key) ?? Number.NEGATIVE_INFINITY;
  }
}
