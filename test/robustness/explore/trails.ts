import { Announcements } from "../sim/announcements.ts";
import type { Invariant } from "../sim/assumptions.ts";
import { ByNonce } from "../sim/by-nonce.ts";
import { checkClaim, contentsOf } from "../sim/claims.ts";
import { idOf, isCompletion, nonceOf, type Request } from "../sim/request.ts";
import type { RunHistories } from "../sim/run-histories.ts";
import { isGranted } from "../sim/wire.ts";
import type { Client } from "./client.ts";
import { Operated } from "./operated.ts";
import { type Answer, type Contents, scoreOf, textAt } from "./store.ts";
import { checkTurn } from "./turns.ts";
import { type Message, type Server, tooLarge, type Watcher, type World } from "./world.ts";

/** Reports that an invariant does not hold. */
export type Report = (invariant: Invariant, detail: string) => void;

/** What the simulator's checks need of a world. */
export type Checks = ConstructorParameters<typeof RunHistories>[0];

/** All requests of one nonce to one endpoint. */
interface Trail {
  readonly client: string;
  /** What its first request was about. */
  readonly key: string;
  /** Requests sent. */
  acquires: number;
  extensions: number;
  releases: number;
  /** An acquire was executed and left the value there; and no release was executed since. */
  acquired: boolean;
  standing: boolean;
  releaseExecuted: boolean;
  /** When a release was last executed, in ms. */
  releasedAt: number;
  /** The client knows that the value stands there, or will get the answer that says so, and has sent no release since. */
  releaseDue: boolean;
  restored: boolean;
  /** A second execution acquired it. */
  repeated: boolean;
  completed: boolean;
  /** The last answers that the client got. */
  grantedAcquire: boolean | undefined;
  /** That was a refusal for a lock that a run needs. */
  refusedByLock: boolean;
  /** How often it was told that a result is too large. */
  uploads: number;
  freed: boolean;
  gone: boolean;
  /** A release has removed the value, whatever was replied, and when it last did so, in ms. */
  removed: boolean;
  removedAt: number;
  /** When its extensions were executed for the first time, in ms, by the command's number. */
  readonly extended: Map<number, number>;
  /** When a request to extend or verify last found the value, in ms. */
  stoodAt: number;
  /** The key of an announcement, and its text: later ones replace it. */
  announced: { readonly key: string; readonly text: string } | undefined;
}

/** What leaves a value on an endpoint that must be rolled back where its call fails. */
const leaves: readonly Request["operation"][] = ["acquire", "restore", "announce"];

/** In the longest scenario, with a pause after each: the shortest pause is 30 ms. */
const mostExtensions = 50;

/** Everything that clients sent, endpoints executed and clients were told, by nonce: every round has its own. */
export class Trails implements Watcher {
  readonly #report: Report;
  readonly #checks: Checks;
  readonly #exactReplies: boolean;
  readonly #world: World;
  readonly #trails = new ByNonce<Server, Trail>();
  /** The nonce of the last acquire, by client. */
  readonly #last = new Map<string, string>();

  /** The announcements of debounced calls. */
  readonly announcements: Announcements;
  readonly operated: Operated;

  constructor(checks: Checks, exactReplies: boolean, world: World) {
    this.#report = checks.violate;
    this.#checks = checks;
    this.operated = new Operated(world);
    this.#world = world;
    this.#exactReplies = exactReplies;
    this.announcements = new Announcements({
      servers: world.servers,
      get now() {
        return world.moment();
      },
    });
  }

  sent(message: Message): void {
    this.#sent(message);
    if (message.request?.locks) this.#sent(aboutLocks(message));
  }

  #sent(message: Message): void {
    const { client, request, command } = message;
    const trail = this.#of(message);
    if (!request || !trail) return;
    // What a successor replaces counts as released by it.
    if (request.successor) {
      trail.releases += 1;
      trail.releaseDue = false;
    }
    const completes = isCompletion(command);
    if (request.operation === "announce") {
      trail.announced = { key: request.keys[0]!, text: request.value };
      this.#announced(client, request);
    } else if (request.operation === "release") {
      trail.releases += 1;
      trail.releaseDue = false;
    } else if (completes) trail.completed = true;
    else if (request.operation === "extend") {
      trail.extensions += 1;
      if (trail.extensions === mostExtensions) {
        this.#report("requests are bounded", `${client.name} sent ${mostExtensions} extensions of one hold`);
      }
    } else if (request.operation === "acquire") {
      trail.acquires += 1;
      this.#last.set(client.name, nonceOf(request.value));
      if (trail.acquires === 4) {
        this.#report("requests are bounded", `${client.name} sent four acquires of one round`);
      }
    }
  }

  /** Which calls were announced before this one decides later what may run. */
  #announced(client: Client, request: Request): void {
    const before = this.announcements.complete().filter(({ by }) => by !== client.name);
    if (before.length > 0) this.#world.note(`${client.name} after ${before.map(({ text }) => text)}`);
    this.announcements.sent(client, request);
  }

  executed(message: Message, before: Contents, after: Contents): void {
    this.#executed(message, before, after);
    this.operated.executed(message, before, after);
    const { request, command, answer, server } = message;
    if (!request?.locks || !answer || "refused" in answer) return;
    this.#executed(aboutLocks(message), before, after);
    checkClaim(this.#checks, request, {
      where: server!.name,
      granted: isGranted(request, command, answer.reply),
      before: contentsOf(request, (key) => textAt(before, key) ?? null),
      after: contentsOf(request, (key) => textAt(after, key) ?? null),
    });
  }

  #executed(message: Message, before: Contents, after: Contents): void {
    const { client, server, request, command, commandId, answer, isCopy } = message;
    const trail = this.#of(message);
    if (!request || !trail || !answer) return;
    const where = `${server!.name} ${request.operation} ${request.keys.join()} for ${client.name}`;
    this.#checkContents(request, before, after, where);
    const granted = isYes(message, answer);
    const { operation, tombstone } = request;
    if (operation === "release") {
      this.#released(trail, this.#stands(request, before) && !this.#stands(request, after));
    }
    if (operation === "release") this.#checkForgotten(message, before, after);
    if (operation === "release" && granted) this.announcements.removed(server!, request);
    if (operation === "announce") this.announcements.executed(server!, request, granted);
    const now = this.#world.serverTime();
    checkTurn(this.#report, request, { where, granted, before, after, now });
    if (operation === "extend" && granted && request.from === 1 && trail.releaseExecuted && !trail.standing) {
      this.#report("rolled back stays rolled back", `${where} after its release`);
    }
    if (request.successor && granted) {
      trail.standing = false;
      Object.assign(this.#of(aboutSuccessor(message))!, { acquired: true, standing: true });
    }
    if (operation === "extend" && this.#stands(request, before)) trail.stoodAt = this.#world.time;
    if (operation === "extend" && granted && !trail.extended.has(commandId)) {
      trail.extended.set(commandId, this.#world.time);
    }
    const asks = operation === "acquire" || operation === "announce";
    // A run's key and locks are refused together: see the key.
    const isAlone = request.from === 1 && request.id === undefined;
    if ((asks || operation === "extend") && !granted && isAlone) this.#checkRefusal(message, before, trail);
    if (!granted || !leaves.includes(operation) || request.from > 1 || isCompletion(command)) return;
    // "Kept memory", and "single execution".
    const isExcused = trail.releasedAt <= server!.forgotAt || isCopy;
    if (trail.releaseExecuted && tombstone !== undefined && !isExcused) {
      this.#report("rolled back stays rolled back", `${where} after its rollback`);
    }
    // It was gone, and stands again.
    if (!before.entries.has(request.keys[0]!)) trail.extended.clear();
    trail.acquired = true;
    trail.standing = true;
    trail.restored ||= operation === "restore";
    trail.repeated ||= isCopy;
    // Also where nobody waits any more: the request ends by its answer or its timeout, and a release follows.
    const isAwaited = this.#world.time < message.awaitedUntil;
    if (asks && isAwaited && !isCopy) trail.releaseDue = true;
  }

  #released(trail: Trail, isGone: boolean): void {
    trail.releaseExecuted = true;
    trail.releasedAt = this.#world.time;
    trail.standing = false;
    trail.removed ||= isGone;
    if (isGone) trail.removedAt = this.#world.time;
  }

  /** A run under way is removed only by the client that began it. */
  #checkForgotten({ request, client, server }: Message, before: Contents, after: Contents): void {
    const [key = ""] = request!.keys;
    const text = textAt(before, key);
    if (!text?.startsWith("P1 ") || textAt(after, key) !== undefined) return;
    const owner = this.#trails.find(nonceOf(text), server!)?.client;
    if (owner === client.name) return;
    this.#report("a run is not forgotten", `${client.name} removes a run of ${owner}`);
  }

  /** Whether an endpoint with these contents has all that a request is about. */
  #stands({ keys, value, from, isMember }: Request, contents: Contents): boolean {
    const now = this.#world.serverTime();
    return keys.every((key) =>
      isMember ? scoreOf(contents, key, value)! > now : holds(contents, key, { value, from }),
    );
  }

  delivered(message: Message): void {
    this.#delivered(message);
    if (message.request?.locks) this.#delivered(aboutLocks(message));
  }

  #delivered(message: Message): void {
    const { request, answer } = message;
    const trail = this.#of(message);
    if (!request || !trail || !answer) return;
    if ("refused" in answer) {
      if (answer.refused === tooLarge) this.#refusedForSize(trail);
      return;
    }
    const granted = isYes(message, answer);
    if (request.operation === "release") trail[granted ? "freed" : "gone"] = true;
    if (request.operation === "announce") this.announcements.answered(message.server!, request, granted);
    if (request.successor && granted) {
      const successor = this.#of(aboutSuccessor(message))!;
      successor.releaseDue = successor.standing;
    }
    if (request.operation !== "acquire" && request.operation !== "announce") return;
    trail.grantedAcquire = granted;
    trail.refusedByLock = Array.isArray(answer.reply) && answer.reply[2] === "l";
    if (granted && trail.standing) trail.releaseDue = true;
  }

  /** A few uploads are allowed: requests that were under way, and one more round. */
  #refusedForSize(trail: Trail): void {
    trail.uploads += 1;
    if (trail.uploads !== 5) return;
    this.#report(
      "requests are bounded",
      `${trail.client} has learned five times that its result is too large`,
    );
  }

  /** The nonce of a client's last acquire. */
  lastRound(client: string): string | undefined {
    return this.#last.get(client);
  }

  /** How many endpoints a client knows to have granted, and refused, the round of a nonce; `byLock`: for a lock. */
  acquireVotes(nonce: string): { granted: number; refused: number; byLock: number } {
    return {
      byLock: this.#trails.count(nonce, ({ refusedByLock }) => refusedByLock),
      granted: this.#trails.count(nonce, ({ grantedAcquire }) => grantedAcquire === true),
      refused: this.#trails.count(nonce, ({ grantedAcquire }) => grantedAcquire === false),
    };
  }

  /** Whether another round than that of a nonce has acquired anything anywhere, at the same key. */
  isContended(nonce: string): boolean {
    const [own] = this.#trails.all(nonce);
    const acquired = [...this.#trails].filter(({ trail }) => trail.acquired && trail.key === own?.key);
    return acquired.some(({ nonce: other }) => other !== nonce);
  }

  /** How many endpoints answered a release with "freed", and with "gone", and from how many one has removed it. */
  releaseVotes(nonces: readonly string[]): { freed: number; gone: number; removed: number } {
    return {
      freed: this.#trails.count(nonces, ({ freed }) => freed),
      // Of a lock that was handed over, the nonce of the handle comes first: where it is gone, all are.
      gone: this.#trails.count(nonces[0]!, ({ gone }) => gone),
      removed: this.#trails.count(nonces, ({ removed }) => removed),
    };
  }

  /** On how many endpoints a request to extend or verify has found the value since `time`, in ms. */
  stoodSince(nonce: string, time: number): number {
    return this.#trails.count(nonce, ({ stoodAt }) => stoodAt >= time);
  }

  /** When each endpoint that has extended a nonce did so for the first and for the last time. */
  extensionsExecuted(nonce: string): { first: number; last: number }[] {
    return this.#trails.all(nonce).flatMap(({ extended }) => {
      const times = [...extended.values()];
      return times.length > 0 ? { first: Math.min(...times), last: Math.max(...times) } : [];
    });
  }

  /** On how many endpoints something that was extended at `since` or later stood at `until` or later. */
  extendedOn(since: number, until: number): number {
    const servers = new Set<Server>();
    for (const { server, trail } of this.#trails) {
      const last = Math.max(...trail.extended.values());
      if (last >= since && !(trail.removed && trail.removedAt < until)) servers.add(server);
    }
    return servers.size;
  }

  /** Every partial grant was rolled back, or at least that was tried. `kept`: nonces that nobody meant to release. */
  checkAtEnd(kept: ReadonlySet<string>): void {
    for (const { nonce, server, trail } of this.#trails) {
      const { client, acquired, completed, releases, releaseDue, standing, announced } = trail;
      if (kept.has(nonce) || !acquired || completed) continue;
      // "Single execution": where a refusal shows that nothing was acquired, nothing is rolled back.
      if (trail.repeated && trail.grantedAcquire === false) continue;
      if (releases > 0 && !(releaseDue && standing)) continue;
      if (announced && server.contents.entries.get(announced.key)?.value !== announced.text) continue;
      const detail = `${client} left something on ${server.name} and never rolled it back`;
      this.#report("nothing is abandoned", detail);
    }
  }

  #checkContents(request: Request, before: Contents, after: Contents, where: string): void {
    const { operation, keys, value, isMember } = request;
    const endOf = (contents: Contents, key: string) =>
      isMember ? scoreOf(contents, key, value) : contents.entries.get(key)?.deadline;
    for (const { key, deadline } of after.entries.values()) {
      if (deadline === undefined) this.#report("every key expires", `${where}: ${key} has no ttl`);
    }
    if (!leaves.includes(operation)) return;
    for (const key of keys) {
      const [earlier, later] = [endOf(before, key), endOf(after, key)];
      if (earlier !== undefined && (later ?? 0) < earlier) {
        this.#report("validity is honest", `${where} shortened it`);
      }
    }
  }

  /** A request that is executed again must not be refused because of its first execution. */
  #checkRefusal({ request, command, client, server }: Message, before: Contents, trail: Trail): void {
    const { locks } = request!;
    const stands = this.#stands(request!, before) && (!locks || this.#stands(locks, before));
    // A plain command cannot recognise its own value. It is sent only where nobody repeats requests.
    const isPlain = command[0] === "SET" && this.#exactReplies;
    if (!stands || trail.restored || isPlain) return;
    this.#report("refusals are true", `${server!.name} refused ${client.name} because of itself`);
  }

  #of({ request, server, client }: Message): Trail | undefined {
    // Counts of runs are compared, not owned.
    if (!request || !server || request.isCount) return undefined;
    return this.#trails.of(idOf(request), server, () => newTrail(client.name, request.keys[0]!));
  }
}

function newTrail(client: string, key: string): Trail {
  return {
    client,
    key,
    acquires: 0,
    extensions: 0,
    releases: 0,
    acquired: false,
    standing: false,
    releaseExecuted: false,
    releasedAt: Number.POSITIVE_INFINITY,
    releaseDue: false,
    restored: false,
    repeated: false,
    completed: false,
    grantedAcquire: undefined,
    refusedByLock: false,
    uploads: 0,
    freed: false,
    gone: false,
    removed: false,
    removedAt: Number.NEGATIVE_INFINITY,
    extended: new Map(),
    stoodAt: Number.NEGATIVE_INFINITY,
    announced: undefined,
  };
}

/** The same message as one about the locks of a run: its answer, and whether it completes, is about the record. */
function aboutLocks(message: Message): Message {
  return { ...message, request: message.request!.locks, command: [] };
}

/** The same message as one about what it puts in the place of a nonce. */
function aboutSuccessor(message: Message): Message {
  return { ...message, request: message.request!.successor };
}

/** Whether a key has a value, from a character on. That of a run has the number of its confirmation before it. */
function holds(contents: Contents, key: string, { value, from }: Pick<Request, "value" | "from">): boolean {
  const text = textAt(contents, key)?.replace(/^r[12]:/, "");
  return text !== undefined && text.slice(from - 1) === value.slice(from - 1);
}

function isYes({ request, command }: Message, answer: Answer): boolean {
  return "reply" in answer && isGranted(request!, command, answer.reply);
}
