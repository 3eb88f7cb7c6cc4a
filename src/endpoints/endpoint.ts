/** A Redis command: its name and arguments. */
export type Command = readonly (string | number)[];

/**
 * Which commands an endpoint understands. `upstash`: compare-and-set and compare-and-delete as native commands
 * (Upstash; also Redis 8.4 and Dragonfly 1.37), one billed command each. `redis`: any Redis from 6.2, which
 * does the same in a script.
 */
export type Dialect = "upstash" | "redis";

/** One independent Redis, reached by whatever means. */
export interface Endpoint {
  /** Names the endpoint in votes, errors and events; must contain no secret. */
  readonly name: string;
  readonly dialect: Dialect;
  /**
   * Whether a reply is exactly what the server said to this one attempt. Where a client in between may retry
   * or invent replies, leave it out: the library then uses only scripts whose success is an unguessable echo.
   */
  readonly exactReplies?: boolean;
  /**
   * Sends one command, once, and resolves with Redis's reply. Rejects when there is none or it is an error;
   * must end soon after `signal` aborts.
   */
  send(command: Command, signal: AbortSignal): Promise<unknown>;
}

/** The dialect that the server behind `host` is known to speak. */
export function dialectOf(host: string): Dialect {
  return /\.upstash\.io(:\d+)?$/.test(host) ? "upstash" : "redis";
}

/** Passes a valid dialect, or none, through. */
export function checkDialect(dialect: Dialect | undefined): Dialect | undefined {
  if (dialect === undefined || dialect === "upstash" || dialect === "redis") return dialect;
  throw new TypeError(`dialect must be "upstash" or "redis", got ${String(dialect)}`);
}

/**
 * A server's error text, fit for a message: cut where Redis or Upstash begin to quote the command, or anybody
 * begins to quote JSON, in which secrets look different; without any of `secrets`, and short.
 */
export function withoutSecrets(text: string, secrets: Command): string {
  let clean = text;
  // Before anything is cut: half a secret would not be recognised.
  for (const secret of secrets) {
    if (typeof secret === "string" && secret.length >= 8) clean = clean.replaceAll(secret, "…");
  }
  const [said = ""] = clean.split(/,? (?:with args beginning|command was)|["[{]/);
  return said.slice(0, 200);
}
