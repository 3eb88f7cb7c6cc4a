import type { Invariant } from "../sim/assumptions.ts";
import { nonceOf, type Request } from "../sim/request.ts";
import { isGranted } from "../sim/wire.ts";
import { type Answer, type Contents, scoreOf } from "./store.ts";
import type { Message, Server, Watcher, World } from "./world.ts";

/** Reports that an invariant does not hold. */
export type Report = (invariant: Invariant, detail: string) => void;

/** All requests of one nonce to one endpoint. */
interface Trail {
  readonly client: string;
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
  /** Until when the client waits for the answer to its acquire, in ms. */
  awaitedUntil: number;
  restored: boolean;
  /** A second execution acquired it. */
  repeated: boolean;
  completed: boolean;
  /** The last answers that the client got. */
  grantedAcquire: boolean | undefined;
  freed: boolean;
  gone: boolean;
  /** A release has removed the value, whatever was replied. */
  removed: boolean;
}

/** In the longest scenario, with a pause after each: the shortest pause is 30 ms. */
const mostExtensions = 50;

/** Everything that clients sent, endpoints executed and clients were told, by nonce: every round has its own. */
export class Trails implements Watcher {
  readonly #report: Report;
  readonly #exactReplies: boolean;
  readonly #clocks: Pick<World, "time" | "serverTime">;
  readonly #trails = new Map<string, Map<Server, Trail>>();
  /** The nonce of the last acquire, by client. */
  readonly #last = new Map<string, string>();

  constructor(report: Report, exactReplies: boolean, clocks: Pick<World, "time" | "serverTime">) {
    this.#report = report;
    this.#clocks = clocks;
    this.#exactReplies = exactReplies;
  }

  sent(message: Message): void {
    const { client, request, command } = message;
    const trail = this.#of(message);
    if (!request || !trail) return;
    const completes = command.some((word) => /^[CN]1 /.test(String(word)));
    if (request.operation === "release") {
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
      trail.awaitedUntil = this.#clocks.time + client.timeout;
      this.#last.set(client.name, nonceOf(request.value));
      if (trail.acquires === 4) {
        this.#report("requests are bounded", `${client.name} sent four acquires of one round`);
      }
    }
  }

  executed(message: Message, before: Contents, after: Contents): void {
    const { client, server, request, command, answer, isCopy } = message;
    const trail = this.#of(message);
    if (!request || !trail || !answer) return;
    const where = `${server!.name} ${request.operation} ${request.keys.join()} for ${client.name}`;
    this.#checkContents(request, before, after, where);
    const granted = isYes(message, answer);
    const { operation, tombstone } = request;
    if (operation === "release") {
      trail.releaseExecuted = true;
      trail.releasedAt = this.#clocks.time;
      trail.standing = false;
      trail.removed ||= granted;
    }
    if (operation === "extend" && granted && request.from === 1 && trail.releaseExecuted && !trail.standing) {
      this.#report("rolled back stays rolled back", `${where} after its release`);
    }
    if (operation === "acquire" && !granted && request.from === 1) this.#checkRefusal(message, before, trail);
    const acquires = (operation === "acquire" || operation === "restore") && request.from === 1;
    if (!granted || !acquires || command.some((word) => /^[CN]1 /.test(String(word)))) return;
    // "Kept memory", and "single execution".
    const isExcused = trail.releasedAt <= server!.forgotAt || isCopy;
    if (trail.releaseExecuted && tombstone !== undefined && !isExcused) {
      this.#report("rolled back stays rolled back", `${where} after its rollback`);
    }
    trail.acquired = true;
    trail.standing = true;
    trail.restored ||= operation === "restore";
    trail.repeated ||= isCopy;
    // Also where nobody waits any more: the request ends by its answer or its timeout, and a release follows.
    const isAwaited = this.#clocks.time < trail.awaitedUntil;
    if (operation === "acquire" && isAwaited && !isCopy) trail.releaseDue = true;
  }

  delivered(message: Message): void {
    const { request, answer } = message;
    const trail = this.#of(message);
    if (!request || !trail || !answer || "refused" in answer) return;
    const granted = isYes(message, answer);
    if (request.operation === "release") trail[granted ? "freed" : "gone"] = true;
    if (request.operation !== "acquire") return;
    trail.grantedAcquire = granted;
    if (granted && trail.standing) trail.releaseDue = true;
  }

  /** The nonce of a client's last acquire. */
  lastRound(client: string): string | undefined {
    return this.#last.get(client);
  }

  /** How many endpoints a client knows to have granted, and refused, the round of a nonce. */
  acquireVotes(nonce: string): { granted: number; refused: number } {
    const trails = [...(this.#trails.get(nonce)?.values() ?? [])];
    return {
      granted: trails.filter(({ grantedAcquire }) => grantedAcquire === true).length,
      refused: trails.filter(({ grantedAcquire }) => grantedAcquire === false).length,
    };
  }

  /** Whether another round than that of a nonce has acquired anything anywhere. */
  isContended(nonce: string): boolean {
    return [...this.#trails].some(
      ([other, trails]) => other !== nonce && [...trails.values()].some(({ acquired }) => acquired),
    );
  }

  /** How many endpoints answered a release with "freed", and with "gone", and from how many one has removed it. */
  releaseVotes(nonce: string): { freed: number; gone: number; removed: number } {
    const trails = [...(this.#trails.get(nonce)?.values() ?? [])];
    return {
      freed: trails.filter(({ freed }) => freed).length,
      gone: trails.filter(({ gone }) => gone).length,
      removed: trails.filter(({ removed }) => removed).length,
    };
  }

  /** Every partial grant was rolled back, or at least that was tried. `kept`: nonces that nobody meant to release. */
  checkAtEnd(kept: ReadonlySet<string>): void {
    for (const [nonce, trails] of this.#trails) {
      for (const [server, trail] of trails) {
        const { client, acquired, completed, releases, releaseDue, standing } = trail;
        if (kept.has(nonce) || !acquired || completed) continue;
        // "Single execution": where a refusal shows that nothing was acquired, nothing is rolled back.
        if (trail.repeated && trail.grantedAcquire === false) continue;
        if (releases > 0 && !(releaseDue && standing)) continue;
        this.#report(
          "nothing is abandoned",
          `${client} left something on ${server.name} and never rolled it back`,
        );
      }
    }
  }

  #checkContents(request: Request, before: Contents, after: Contents, where: string): void {
    const { operation, keys, value, isMember } = request;
    const endOf = (contents: Contents, key: string) =>
      isMember ? scoreOf(contents, key, value) : contents.entries.get(key)?.deadline;
    for (const { key, deadline } of after.entries.values()) {
      if (deadline === undefined) this.#report("every key expires", `${where}: ${key} has no ttl`);
    }
    if (operation !== "acquire" && operation !== "restore") return;
    for (const key of keys) {
      const [earlier, later] = [endOf(before, key), endOf(after, key)];
      if (earlier !== undefined && (later ?? 0) < earlier) {
        this.#report("validity is honest", `${where} shortened it`);
      }
    }
  }

  /** A request that is executed again must not be refused because of its first execution. */
  #checkRefusal({ request, command, client, server }: Message, before: Contents, trail: Trail): void {
    const { keys, value, isMember } = request!;
    const now = this.#clocks.serverTime();
    const stands = keys.every((key) =>
      isMember ? scoreOf(before, key, value)! > now : before.entries.get(key)?.value === value,
    );
    // A plain command cannot recognise its own value. It is sent only where nobody repeats requests.
    const isPlain = command[0] === "SET" && this.#exactReplies;
    if (!stands || trail.restored || isPlain) return;
    this.#report("refusals are true", `${server!.name} refused ${client.name} because of itself`);
  }

  #of({ request, server, client }: Message): Trail | undefined {
    if (!request || !server) return undefined;
    const nonce = nonceOf(request.value);
    let trails = this.#trails.get(nonce);
    if (!trails) {
      trails = new Map();
      this.#trails.set(nonce, trails);
    }
    let trail = trails.get(server);
    if (!trail) {
      trail = {
        client: client.name,
        acquires: 0,
        extensions: 0,
        releases: 0,
        acquired: false,
        standing: false,
        releaseExecuted: false,
        releasedAt: Number.POSITIVE_INFINITY,
        releaseDue: false,
        awaitedUntil: Number.NEGATIVE_INFINITY,
        restored: false,
        repeated: false,
        completed: false,
        grantedAcquire: undefined,
        freed: false,
        gone: false,
        removed: false,
      };
      trails.set(server, trail);
    }
    return trail;
  }
}

function isYes({ request, command }: Message, answer: Answer): boolean {
  return "reply" in answer && isGranted(request!, command, answer.reply);
}
