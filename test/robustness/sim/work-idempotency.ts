import { createHash } from "node:crypto";
import {
  FingerprintMismatchError,
  Idempotency,
  InProgressError,
  LeaseLostError,
  ResultUnavailableError,
} from "../../../src/idempotency/index.ts";
import { QuorumError, type RedlockErrorCode } from "../../../src/index.ts";
import { quorumOf } from "../../../src/quorum/tally.ts";
import type { Actor } from "./actor.ts";
import { drawOptions } from "./actor.ts";
import { type Hold, newHold } from "./holds.ts";
import type { World } from "./world.ts";

/**
 * What a handler returns: mostly a text, now and then what has no JSON, what `maxResult` keeps from being sent, and
 * what the servers refuse for its size. By the number of the value, so that nothing that is drawn shifts.
 */
function resultOf(value: string, serial: number): { readonly result: unknown; readonly maxResult: number } {
  if (serial % 9 === 4) return { result: { value, id: 1n }, maxResult: 1_000_000 };
  if (serial % 9 === 7) return { result: value.padEnd(1_500, "."), maxResult: 1_000 };
  if (serial % 9 === 8) return { result: value.padEnd(25_000, "."), maxResult: 100_000 };
  return { result: value, maxResult: 1_000_000 };
}

/** Stands for the results of all runs that could not store theirs. */
const noResult = "no result";

/** What is known of one key: what handlers returned, and what calls were told. */
interface Story {
  /** By value: when its handler returned it. */
  readonly returned: Map<string, number>;
  /** The result that a quorum has stored, and when that was known. */
  stored: { readonly value: string; readonly at: number } | undefined;
  /** The first replay. */
  replayed: string | undefined;
}

/** All keys of a world. */
export class Stories {
  readonly #world: World;
  readonly #stories = new Map<string, Story>();
  #serial = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** A value that no other handler returns. */
  nextValue(): { readonly value: string; readonly serial: number } {
    this.#serial += 1;
    return { value: `result ${this.#serial}`, serial: this.#serial };
  }

  returned(key: string, value: string): void {
    this.#of(key).returned.set(value, this.#world.now);
  }

  /** A handler begins although a result was stored before. */
  begins(key: string, name: string): void {
    const { stored } = this.#of(key);
    if (!stored) return;
    this.#world.violate(
      "a stored result stands",
      `${name} runs ${key} again, ${stored.value} was stored at ${stored.at.toFixed()}`,
    );
  }

  stored(key: string, value: string): void {
    const story = this.#of(key);
    if (story.stored && story.stored.value !== value) {
      this.#world.violate("a stored result stands", `${key}: ${value} stored after ${story.stored.value}`);
    }
    story.stored ??= { value, at: this.#world.now };
  }

  /** @param invoked when the call was made that got it */
  replayed(key: string, value: string, invoked: number): void {
    const story = this.#of(key);
    if (!story.returned.has(value)) {
      this.#world.violate("replays agree", `${key}: nobody returned ${value}`, []);
    }
    if (story.stored && story.stored.at < invoked && story.stored.value !== value) {
      this.#world.violate(
        "a stored result stands",
        `${key}: ${value} replayed, ${story.stored.value} stored`,
      );
    }
    story.replayed ??= value;
    if (story.replayed !== value) {
      this.#world.violate("replays agree", `${key}: ${value} replayed after ${story.replayed}`);
    }
  }

  #of(key: string): Story {
    let story = this.#stories.get(key);
    if (!story) {
      story = { returned: new Map(), stored: undefined, replayed: undefined };
      this.#stories.set(key, story);
    }
    return story;
  }
}

/** Runs a handler under a key that others use as well. */
export async function workIdempotency(actor: Actor, stories: Stories): Promise<void> {
  const { draw, scenario, world, process } = actor;
  const key = draw.pick(["k1", "k2", "k3", `k${4 + Math.floor(world.now / (20 * scenario.ttl))}`]);
  const options = drawOptions(actor);
  const abort = draw.chance(0.1) ? new AbortController() : undefined;
  if (abort) process.timer(draw.between(0, options.ttl), () => abort.abort(new Error("given up")));
  await run(actor, stories, key, {
    lease: options.ttl,
    wait: options.wait,
    timeout: options.timeout,
    backoff: options.backoff,
    deadline: options.deadline,
    maxHold: draw.pick([options.ttl, 4 * options.ttl]),
    fingerprint: draw.chance(0.1) ? draw.pick(["one", "two"]) : undefined,
    signal: abort?.signal,
    length: draw.between(0, draw.chance(0.3) ? 3 : 0.8) * options.ttl,
    throws: draw.chance(0.15),
  });
}

/** Runs a key, waiting as long as it takes. */
export async function takeTurnWithKey(actor: Actor, stories: Stories, bound: number): Promise<void> {
  const length = actor.draw.between(1, 30);
  const key = isUndecidable(actor.world, "k1") ? "k0" : "k1";
  const patience = { wait: 10 * bound, bound, codes: ["RESULT_UNAVAILABLE"] as const };
  await run(actor, stories, key, { lease: 5_000, length, throws: false, backoff: {}, ...patience });
}

/**
 * Whether a key has several results, none of which can get a quorum any more from the endpoints that answer: any that
 * is silent may have made one of them a quorum's, and nobody can be told before it answers, or the retention ends.
 */
function isUndecidable({ servers }: World, key: string): boolean {
  const answering = servers.filter(({ silent }) => !silent);
  const records = answering.map((server) => String(server.execute(["GET", storedKey(key)])));
  const results = records.filter((record) => /^[CN]1 /.test(record));
  const most = Math.max(0, ...results.map((result) => results.filter((other) => other === result).length));
  return results.length > 0 && most + records.length - results.length < quorumOf(servers.length);
}

function storedKey(key: string): string {
  const hash = createHash("sha256").update(JSON.stringify(["sim", key]));
  return `redlock:idem:{${hash.digest("hex")}}`;
}

interface RunPlan {
  readonly lease: number;
  readonly wait: number;
  readonly timeout?: number;
  readonly backoff: { readonly min?: number; readonly max?: number };
  readonly deadline?: number | undefined;
  readonly maxHold?: number;
  readonly fingerprint?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** ms for which the handler works. */
  readonly length: number;
  readonly throws: boolean;
  /** ms for the whole call; the usual one when it is not told. */
  readonly bound?: number;
  /** The errors that are an answer; all but those of misuse when it is not told. */
  readonly codes?: readonly RedlockErrorCode[];
}

async function run(actor: Actor, stories: Stories, key: string, plan: RunPlan): Promise<void> {
  const { world, process, redlock, calls, claims, wire } = actor;
  const { length, throws, bound, codes, ...options } = plan;
  const failure = new Error("the handler failed");
  const invoked = world.now;
  const { value, serial } = stories.nextValue();
  const { result, maxResult } = resultOf(value, serial);
  const story = result === value ? value : noResult;
  const left = (plan.deadline ?? Infinity) - process.now();
  let stored = false;
  let hold: Hold | undefined;
  const idempotency = new Idempotency(redlock, {
    // Far beyond the end of the simulation.
    retention: 86_400_000,
    maxResult,
    onEvent: ({ type, reason }) => {
      world.count(`run: ${type}${reason ? `, ${reason}` : ""}`);
      if (type === "executed" || (type === "unstored" && reason !== "no-quorum")) {
        stored = true;
        stories.stored(key, story);
      }
    },
  });
  const { timeout = 1_000, wait } = plan;
  const outcome = await calls.make(
    process,
    `run ${key} ${JSON.stringify(options)}`,
    bound ?? Math.max(wait, 2 * timeout) + length + Math.max(wait, 2 * timeout) + 6 * timeout,
    codes ?? ["IN_PROGRESS", "FINGERPRINT_MISMATCH", "LEASE_LOST", "NO_QUORUM", "RESULT_UNAVAILABLE"],
    () =>
      idempotency.run<unknown>(key, { scope: "sim", ...options }, async ({ signal, remaining, token }) => {
        stories.begins(key, process.name);
        hold = claim(actor, key, token, invoked, remaining, () => signal.aborted);
        await actor.sleep(length);
        hold.releaseInvoked = world.now;
        claims.end(hold);
        if (throws) throw failure;
        stories.returned(key, story);
        return result;
      }),
    (error) => error === failure || error === options.signal?.reason,
  );
  if (hold) {
    const claimed = wire.longestClaim(hold.nonce);
    if (claimed > Math.max(0, left) + timeout + 2) {
      const detail = `${process.name} claims ${key} for ${claimed} ms, ${left.toFixed()} before its end`;
      world.violate("nothing is abandoned", detail, []);
    }
    const renewals = wire.renewals(hold.nonce);
    const most = 12 + (3 * (world.now - invoked)) / (plan.backoff.min ?? 25);
    if (renewals > most) {
      world.violate("requests are bounded", `${process.name} sent ${renewals} renewals of ${key}`);
    }
  }
  if ("value" in outcome) {
    const { status, unstored } = outcome.value;
    // Nothing but the weather may keep a result, or what stands for it, from its quorum.
    if (unstored === "no-quorum" && bound !== undefined) {
      world.violate("waiters are served", `${process.name}: the result of ${key} is not stored`);
    }
    world.count(`run ${status}`);
    if (status === "replayed") stories.replayed(key, String(outcome.value.value), invoked);
    else if (outcome.value.value !== result) {
      world.violate(
        "the routine's outcome wins",
        `${process.name}: ${String(outcome.value.value)} instead of ${value}`,
      );
    }
    if (status === "executed" && !stored) world.count("executed, not stored");
    return;
  }
  if (outcome.error instanceof ResultUnavailableError) {
    world.count("run: result unavailable");
    stories.replayed(key, noResult, invoked);
    return;
  }
  judge(actor, key, outcome.error, failure);
}

function claim(
  { world, process, claims }: Actor,
  key: string,
  token: string,
  invoked: number,
  remaining: () => number,
  told: () => boolean,
): Hold {
  if (remaining() <= 0 && process.running) {
    world.violate("validity is honest", `${process.name} runs ${key} with nothing left of its lease`);
  }
  const resources = [key];
  const hold = newHold({ resources, nonce: token, process, remaining, told, invoked, acquired: world.now });
  claims.add(hold);
  return hold;
}

function judge({ world, process, wire }: Actor, key: string, error: unknown, failure: Error): void {
  if (error === failure) {
    world.count("run threw");
    return;
  }
  if (error instanceof LeaseLostError) {
    world.count("run lost");
    return;
  }
  if (error instanceof FingerprintMismatchError) {
    world.count("run mismatch");
    return;
  }
  if (error instanceof QuorumError) {
    world.count("run: no quorum");
    return;
  }
  if (!(error instanceof InProgressError)) return;
  const nonce = wire.lastRound(process, storedKey(key));
  const refused = nonce === undefined ? 0 : wire.takes(nonce).refused;
  if (refused === 0)
    world.violate("refusals are true", `${process.name}: ${key} is busy, but nobody said so`);
}
