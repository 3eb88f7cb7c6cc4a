import type { Ask } from "../../endpoints/ask.ts";
import { type Dialect, EndpointError } from "../../index.ts";
import { type Cell, type CellAnswer, claim, claimOrRead, end, keep } from "../../redis/cell.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import { textOf } from "../../redis/script.ts";
import { unlessAborted } from "../../runtime/abort.ts";
import { lineSplitter, parseEvent } from "../../wake-up/events.ts";
import { duration } from "../text.ts";
import { Lack, type Probe, probeTtl, type Written } from "./probe.ts";

// How doctor finds out each thing: the rows of questions.ts. It does not believe an answer, but looks at the stored values.

export async function askPing(probe: Probe): Promise<void> {
  if ((await probe.ask(["PING"])) === "PONG") return;
  throw new EndpointError(probe.endpoint.name, "malformed", "PING has another reply than PONG");
}

export const askToken = (probe: Probe): Promise<unknown> => probe.write("token", "v");

/** Every endpoint writes one shared key: two that are one database meet there. */
export async function askDatabase(probe: Probe): Promise<void> {
  const { number } = probe.place;
  const key = probe.key("database", "all");
  if ((await probe.ask(["SET", key, number, "NX", "PX", probeTtl])) === "OK") return;
  const first = Number(await probe.ask(["GET", key]));
  if (first !== 0 && first !== number) throw new Lack(`it is that of endpoint ${first}`);
}

/** Believes the fastest of a few replies. */
export async function askClock(probe: Probe): Promise<void> {
  let [fastest, ahead] = [Infinity, 0];
  for (let sample = 0; sample < 5; sample += 1) {
    const [sentAt, from] = [Date.now(), performance.now()];
    const reply = await probe.ask(["TIME"]);
    const took = performance.now() - from;
    const [seconds, micros] = Array.isArray(reply) ? reply.map(Number) : [];
    if (took >= fastest) continue;
    fastest = took;
    ahead = seconds! * 1_000 + micros! / 1_000 - (sentAt + took / 2);
  }
  probe.roundTrip = Math.round(fastest * 10) / 10;
  // The way there and back account for the rest. Not a number: the reply was no time.
  if (!(Math.abs(ahead) > 1_000 + fastest / 2)) return;
  const away = `${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} this machine's`;
  throw new Lack(`it is ${away}; locks do not need it, ages, deadlines and signed times of webhooks do`);
}

export async function askDistance({ roundTrip = 0 }: Probe): Promise<void> {
  if (roundTrip <= 300) return;
  const usual = "the default timeout is 1 s, or a third of the ttl if that is less";
  throw new Lack(`a request takes ${duration(roundTrip)}; ${usual}`);
}

/** An operation of the library, its outcome, and what must be stored afterwards. */
type Step = readonly [
  what: string,
  operation: (call: Ask) => Promise<CellAnswer>,
  outcome: CellAnswer["outcome"],
  stored: Omit<Written, "at">,
];

/** The lowest fence: as many digits as one of today has. */
const least = 1_234_567_890_123;

/** How a lock is claimed. With a fence, all is done by script. */
function cellOf(probe: Probe, name: string, isFenced: boolean): Cell & { readonly key: string } {
  const key = probe.key(name);
  const counters = { keys: [probe.key(`${name}:fence`)], least, retention: probeTtl };
  const fenced = { tombstone: probe.key(`${name}:void`), counters };
  return { key, keys: [key], value: `c${key}`, ...(isFenced && fenced) };
}

/** A lock from its claim to its end, and others who try to get, extend and end it. */
function life(probe: Probe, name: string, isFenced = false, claimOne: typeof claim = claim): Step[] {
  const own = cellOf(probe, name, isFenced);
  const other = { ...cellOf(probe, `${name}:other`, isFenced), keys: own.keys };
  const absent = cellOf(probe, `${name}:absent`, isFenced);
  const half = probeTtl / 2;
  const acquired = { key: own.key, value: own.value, ttl: half };
  const extended = { ...acquired, ttl: probeTtl };
  const gone = { key: own.key, value: null, ttl: 0 };
  const nothing = { ...gone, key: absent.key };
  return [
    ["a claim", (call) => claimOne(call, own, half), "granted", acquired],
    ["another claim", (call) => claimOne(call, other, probeTtl), "held", acquired],
    ["an extension", (call) => keep(call, own, probeTtl), "granted", extended],
    ["an extension of another value", (call) => keep(call, other, half), "lost", extended],
    ["an extension of nothing", (call) => keep(call, absent, half), "lost", nothing],
    ["an end of another value", (call) => end(call, other), "lost", extended],
    ["an end", (call) => end(call, own), "granted", gone],
    ["an end of nothing", (call) => end(call, absent), "lost", nothing],
  ];
}

/** Goes through steps, until something is wrong. */
async function follow(probe: Probe, dialect: Dialect, steps: readonly Step[]): Promise<void> {
  const call: Ask = { endpoint: { ...probe.endpoint, dialect }, send: (command) => probe.ask(command) };
  let at = performance.now();
  for (const [what, operation, outcome, stored] of steps) {
    // A refused operation has changed nothing: the same is stored since then.
    if (outcome === "granted") at = performance.now();
    const answer = await operation(call).catch((error: Error) => {
      throw error instanceof EndpointError ? error : new Lack(`${what}: ${error.message}`);
    });
    const { other = stored.value, retryAfter } = answer;
    const mistake =
      (answer.outcome !== outcome && `the answer is "${answer.outcome}"`) ||
      (outcome === "held" && other !== stored.value && "the answer has another value") ||
      (retryAfter !== undefined && probe.ttlMistake({ ...stored, at }, retryAfter));
    if (mistake) throw new Lack(`${what}: ${mistake}`);
    await probe.mustBeStored({ ...stored, at }, what);
  }
}

const unknownScript = ["EVALSHA", "0".repeat(40), 0];

/** What every dialect needs: locks by script, and once the server has shown that it deletes, claims by `SET … NX PX`. */
export async function askLocks(probe: Probe): Promise<void> {
  const refusal = await probe.ask(unknownScript).catch((error: Error) => error);
  if (!(refusal instanceof Error)) throw new Lack("it ran a script that it cannot know");
  if (!refusal.message.includes("NOSCRIPT")) throw refusal;
  await follow(probe, "redis", [...life(probe, "script", true), ...life(probe, "nx").slice(0, 2)]);
}

/** What a dialect needs besides: locks without scripts, runs that claim by `SET … NX GET PX`, and scripts with the flag. */
export async function askDialect(probe: Probe): Promise<void> {
  const { dialect } = probe.endpoint;
  if (dialect === "redis") return;
  const run = life(probe, "nx-get", false, claimOrRead).slice(0, 2);
  await follow(probe, "redis-8.4", [...life(probe, "native"), ...run]);
  if (dialect === "redis-8.4") return;
  const { key, value } = await probe.write("peek", "v1");
  const reply = await probe.ask(["EVAL", textOf(peekScript.source, "upstash"), 1, key, "peek"]);
  if (!Array.isArray(reply) || reply[0] !== value) throw new Lack("a script reads something else");
}

/** Several commands of one turn, which the endpoint sends together if it can. */
export async function askPipeline(probe: Probe): Promise<void> {
  const commands = [["PING", "first"], unknownScript, ["PING", "last"]];
  const outcomes = await Promise.allSettled(commands.map((command) => probe.ask(command)));
  const [first] = outcomes;
  // Without any reply, the whole request has failed.
  if (first!.status === "rejected") throw first!.reason;
  const replies = outcomes.map((each) => (each.status === "rejected" ? "refused" : each.value));
  if (replies.join() !== "first,refused,last") throw new Lack("the replies are not those of the commands");
}

/** A value of the size of the default `maxResult`, in bytes, is stored whole, and can be read. */
export async function askResult(probe: Probe): Promise<void> {
  await probe.mustBeStored(await probe.write("result", "v".repeat(1_000_000)), "after a SET");
}

export async function askEviction(probe: Probe): Promise<void> {
  const config = await probe.ask(["CONFIG", "GET", "maxmemory-policy"]).catch(() => undefined);
  const told = config ?? (await probe.ask(["INFO", "memory"]).catch(() => undefined));
  const policy = /maxmemory[-_]policy[:,]\s*([a-z-]+)/.exec(String(told))?.[1];
  if (!policy) throw new Lack("neither CONFIG GET nor INFO says it", "unknown");
  if (policy !== "noeviction") throw new Lack(policy);
}

export async function askStream(probe: Probe): Promise<void> {
  if (!probe.endpoint.subscribe) throw new Lack("no client of a Cluster subscribes here");
  // As long as three requests may take.
  const signal = AbortSignal.timeout(3 * probe.settings.timeout);
  const hearing = unlessAborted(hearsMessage(probe, signal), signal);
  const heard = await hearing.catch((error: Error) => error.message);
  if (heard !== true) throw new Lack(heard || "no message in time");
}

/** Publishes when the subscription is active, and listens until the message arrives. False: the stream has ended. */
async function hearsMessage(probe: Probe, signal: AbortSignal): Promise<boolean> {
  const channel = probe.key("channel");
  const body = await probe.endpoint.subscribe!(channel, signal);
  const split = lineSplitter();
  const decoder = new TextDecoder();
  for await (const piece of body) {
    const kinds = split(decoder.decode(piece, { stream: true })).map((line) => parseEvent(line)?.kind);
    if (kinds.includes("message")) return true;
    if (kinds.includes("subscribed")) await probe.ask(["PUBLISH", channel, "free"]);
  }
  return false;
}
