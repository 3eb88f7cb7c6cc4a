import {
  type Command,
  type Dialect,
  type Endpoint,
  EndpointError,
  type HttpEndpointOptions,
  httpEndpoint,
  QuorumError,
  Redlock,
} from "../index.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";

// What doctor asks endpoints. What the answers mean is in doctor-advice.ts.

/** Why a request failed. `config`: the URL or the token cannot be used at all. */
export interface Failure {
  readonly kind: EndpointError["kind"] | "config";
  readonly status?: number | undefined;
  readonly message: string;
}

/** What one endpoint answered. What is absent was not asked, because something before it failed. */
export interface Examination {
  /** Its host; where the URL cannot be used: `endpoint 2`. */
  readonly endpoint: string;
  /** From 1. */
  readonly number: number;
  readonly dialect?: Dialect | undefined;
  /** The variable that has its URL. */
  readonly variable?: string | undefined;
  readonly isLoopback: boolean;
  readonly isEncrypted: boolean;
  /** Why the first request failed. */
  readonly unreachable?: Failure | undefined;
  /** Whether a key could be written; a number: that endpoint has written to this database at the same moment. */
  readonly write?: "yes" | number | Failure | undefined;
  /** Whether the server has compare-and-set as commands (`SET … IFEQ`, `DELEX`). */
  readonly native?: "yes" | Failure | undefined;
  /** Whether it accepts a script with Upstash's flag. Asked where `native` is `yes`. */
  readonly flag?: "yes" | Failure | undefined;
  /** Whether a lock with a fence, which needs scripts, could be acquired and released, in the dialect that works. */
  readonly scripts?: "yes" | Failure | undefined;
  /** Median of a few, ms. */
  readonly roundTrip?: number | undefined;
  /** How far its clock is ahead of this machine's, in ms, known to ± `within`. */
  readonly clock?: { readonly ahead: number; readonly within: number } | undefined;
}

/** How to examine. */
export interface ExaminationSettings {
  readonly prefix: string;
  /** ms per request */
  readonly timeout: number;
  /** Names the keys of this examination. Unguessable. */
  readonly id: string;
}

/** An endpoint, or why there is none. */
export type Candidate =
  | { readonly endpoint: Endpoint; readonly url: URL }
  | { readonly failure: Failure; readonly url: undefined };

/** How long the keys of an examination live, in ms, where they could not be deleted. */
const probeTtl = 60_000;

/** How many times the clock is read. */
const samples = 5;

/** An endpoint of these options, or why they cannot be used. */
export function candidateOf(options: HttpEndpointOptions): Candidate {
  try {
    return { endpoint: httpEndpoint(options), url: new URL(options.url) };
  } catch (error) {
    return { failure: { kind: "config", message: (error as Error).message }, url: undefined };
  }
}

/** Examines all endpoints, side by side. */
export async function examineAll(
  candidates: readonly Candidate[],
  settings: ExaminationSettings,
): Promise<Examination[]> {
  // Every endpoint writes the same key, and none deletes it before all have: two that are one database meet there.
  const begun = await Promise.all(
    candidates.map((candidate, index) => begin(candidate, index + 1, settings)),
  );
  return Promise.all(begun.map((examination, index) => finish(candidates[index]!, examination, settings)));
}

async function begin(
  candidate: Candidate,
  number: number,
  settings: ExaminationSettings,
): Promise<Examination> {
  const { url } = candidate;
  const common = {
    number,
    isLoopback: /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(url?.hostname ?? ""),
    isEncrypted: url?.protocol === "https:",
  };
  if ("failure" in candidate) {
    return { ...common, endpoint: `endpoint ${number}`, unreachable: candidate.failure };
  }
  const { endpoint } = candidate;
  const named = { ...common, endpoint: endpoint.name, dialect: endpoint.dialect };
  const unreachable = await failureOf(() => ask(endpoint, ["PING"], settings));
  if (unreachable) return { ...named, unreachable };
  return { ...named, write: await write(endpoint, number, settings) };
}

async function write(
  endpoint: Endpoint,
  number: number,
  settings: ExaminationSettings,
): Promise<Examination["write"]> {
  const key = probeKey(settings);
  try {
    const reply = await ask(endpoint, ["SET", key, String(number), "NX", "PX", probeTtl], settings);
    // 0: another one has, and its number has gone again.
    return reply === "OK" ? "yes" : Number((await ask(endpoint, ["GET", key], settings)) ?? 0);
  } catch (error) {
    return asFailure(error);
  }
}

async function finish(
  candidate: Candidate,
  begun: Examination,
  settings: ExaminationSettings,
): Promise<Examination> {
  if ("failure" in candidate || begun.unreachable) return begun;
  const { endpoint } = candidate;
  const timed = { ...begun, ...(await readClock(endpoint, settings)) };
  if (begun.write !== "yes") return timed;
  const native = await tryNative(endpoint, begun.number, settings);
  const flag = native === "yes" ? await tryFlag(endpoint, settings) : undefined;
  const known = { ...timed, native, ...(flag && { flag }) };
  const dialect = works(known) ? endpoint.dialect : bestDialect(known);
  return { ...known, scripts: await tryScripts({ ...endpoint, dialect }, begun.number, settings) };
}

/** The dialect with which the server does most at the least cost. */
export function bestDialect({ native, flag }: Pick<Examination, "native" | "flag">): Dialect {
  if (native !== "yes") return "redis";
  return flag === "yes" ? "upstash" : "redis-8.4";
}

/** Whether the endpoint's dialect has no command that the server refuses. */
export function works({ dialect, native, flag }: Pick<Examination, "dialect" | "native" | "flag">): boolean {
  return dialect === "redis" || (native === "yes" && (dialect === "redis-8.4" || flag === "yes"));
}

/** Tries the commands of the dialects `redis-8.4` and `upstash`, and deletes the key of the examination in any case. */
async function tryNative(
  endpoint: Endpoint,
  number: number,
  settings: ExaminationSettings,
): Promise<Examination["native"]> {
  const key = probeKey(settings);
  const own = String(number);
  const failure = await failureOf(async () => {
    await ask(endpoint, ["SET", key, own, "IFEQ", own, "PX", probeTtl], settings);
    await ask(endpoint, ["DELEX", key, "IFEQ", own], settings);
  });
  // It expires in any case.
  if (failure) await failureOf(() => ask(endpoint, ["DEL", key], settings));
  return failure ?? "yes";
}

/** Runs an empty script with the flag, as Upstash's own packages send it. */
async function tryFlag(endpoint: Endpoint, settings: ExaminationSettings): Promise<Examination["flag"]> {
  const script = "#!lua flags=allow-key-locking\nreturn 1";
  const failure = await failureOf(() => ask(endpoint, ["EVAL", script, 1, probeKey(settings)], settings));
  return failure ?? "yes";
}

/** Acquires and releases a lock with a fence at this endpoint alone: the library's own script, as the program sends it. */
async function tryScripts(
  endpoint: Endpoint,
  number: number,
  { prefix, timeout, id }: ExaminationSettings,
): Promise<Examination["scripts"]> {
  const redlock = new Redlock({ endpoints: [endpoint], prefix, timeout });
  const options = { fencing: true, ttl: 2 * timeout, fenceRetention: 2 * timeout } as const;
  const failure = await failureOf(async () => {
    const lock = await redlock.acquire(`doctor:${id}:${number}`, { ...options, wait: 0 });
    await lock.release();
  });
  return failure ?? "yes";
}

/** The round trip, and the clock from the fastest of the replies. */
export async function readClock(
  endpoint: Endpoint,
  { timeout, runtime = systemRuntime }: { readonly timeout: number; readonly runtime?: Runtime },
): Promise<Pick<Examination, "roundTrip" | "clock">> {
  const readings: { readonly took: number; readonly ahead: number }[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const sentAt = runtime.now();
    const began = runtime.monotonic();
    const reply = await ask(endpoint, ["TIME"], { timeout }).catch(() => undefined);
    const took = runtime.monotonic() - began;
    const [seconds, micros] = Array.isArray(reply) ? reply.map(Number) : [];
    if (seconds === undefined || micros === undefined || !Number.isFinite(seconds + micros)) break;
    readings.push({ took, ahead: seconds * 1_000 + micros / 1_000 - (sentAt + took / 2) });
  }
  readings.sort((a, b) => a.took - b.took);
  const [fastest] = readings;
  if (!fastest) return {};
  return {
    roundTrip: Math.round(readings[Math.floor(readings.length / 2)]!.took * 10) / 10,
    // The wall clock counts whole milliseconds.
    clock: { ahead: Math.round(fastest.ahead), within: Math.ceil(fastest.took / 2) + 1 },
  };
}

function probeKey({ prefix, id }: ExaminationSettings): string {
  return `${prefix}:doctor:{${id}}`;
}

function ask(
  endpoint: Endpoint,
  command: Command,
  { timeout }: Pick<ExaminationSettings, "timeout">,
): Promise<unknown> {
  return endpoint.send(command, AbortSignal.timeout(timeout));
}

async function failureOf(work: () => Promise<unknown>): Promise<Failure | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    return asFailure(error);
  }
}

/** @throws what is not an endpoint's failure */
export function asFailure(error: unknown): Failure {
  const cause = error instanceof QuorumError ? error.cause : error;
  if (!(cause instanceof EndpointError)) throw error;
  const { kind, status, message, endpoint } = cause;
  const prefix = `${endpoint}: `;
  return { kind, status, message: message.startsWith(prefix) ? message.slice(prefix.length) : message };
}
