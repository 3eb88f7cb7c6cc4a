import { type Schema, typed } from "../check.ts";
/** A Redis command: its name and arguments. */
export type Command = readonly (string | number)[];

/**
 * Which commands an endpoint understands. `redis-8.4`: compare-and-set and compare-and-delete are native commands, `SET …
 * IFEQ` and `DELEX` (Redis 8.4, Valkey 9.2, or later). `upstash`: these, and scripts begin with a flag that only Upstash
 * knows; without it, Upstash runs a script under a lock on the whole database. `redis`: any Redis from 6.2; scripts do
 * what has no native command.
 */
export type Dialect = "upstash" | "redis-8.4" | "redis";

/** The dialects, for errors. */
export const dialectNames = '"upstash", "redis-8.4" or "redis"';

/** One independent Redis, however it is reached. */
export interface Endpoint {
  /** The endpoint's name in votes, errors and events; must contain no secret. */
  readonly name: string;
  readonly dialect: Dialect;
  /**
   * Whether every reply is the server's own reply to this one attempt. Leave it out where a client in between may retry
   * or invent replies: the library then uses only scripts whose success is an unguessable echo. Default false.
   */
  readonly exactReplies?: boolean;
  /**
   * Sends one command, once, and resolves with Redis's reply. Rejects when there is no reply or it is an error;
   * must settle soon after `signal` aborts.
   */
  send(command: Command, signal: AbortSignal): Promise<unknown>;
  /**
   * Subscribes to a channel, and resolves with a stream of server-sent events as Upstash's `/subscribe` sends them. It ends
   * when `signal` aborts. Leave it out where there are no streams: waiters then poll.
   */
  subscribe?(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** The dialect of the server at `host`: `upstash` for Upstash's hosts, else `redis`. */
export function dialectOf(host: string): Dialect {
  return /\.upstash\.io(:\d+)?$/.test(host) ? "upstash" : "redis";
}

/** @throws TypeError when the dialect is neither a valid one nor undefined */
export function checkDialect(dialect: Dialect | undefined): Dialect | undefined {
  if (dialect === undefined || ["upstash", "redis-8.4", "redis"].includes(dialect)) return dialect;
  throw new TypeError(`dialect must be ${dialectNames}, got ${String(dialect)}`);
}

/** What every endpoint can be told. */
export const endpointSchema: Schema<{ name?: string | undefined; dialect?: Dialect | undefined }> = {
  name: typed("string"),
  dialect: (_, dialect: Dialect) => checkDialect(dialect),
};

/**
 * A server's error text without secrets: cut where Redis or Upstash begin to quote the command, or where JSON begins,
 * in which secrets are escaped; without any of `secrets`; at most 200 characters.
 */
export function withoutSecrets(text: string, secrets: Command): string {
  let clean = text;
  // First: half a secret would not be recognised.
  for (const secret of secrets) {
    if (typeof secret === "string" && secret.length >= 8) clean = clean.replaceAll(secret, "…");
  }
  const [said = ""] = clean.split(/,? (?:with args beginning|command was)|["[{]/);
  return said.slice(0, 200);
}
