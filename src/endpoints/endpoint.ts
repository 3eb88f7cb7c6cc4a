import { oneOf, type Schema, typed } from "../check/check.ts";
import { EndpointError } from "../errors/errors.ts";
import { onAbort } from "../runtime/abort.ts";

/** A Redis command: its name and arguments. */
export type Command = readonly (string | number)[];

/**
 * Which commands an endpoint understands. `redis-8.4`: compare-and-set and compare-and-delete are native commands, `SET … IFEQ`
 * and `DELEX` (Redis 8.4, Valkey 9.2, or later). `upstash`: these, and scripts begin with a flag that only Upstash knows.
 * Without the flag, Upstash runs a script under a lock on the whole database. `redis`: any Redis from 6.2, where scripts
 * replace missing commands.
 */
export type Dialect = "upstash" | "redis-8.4" | "redis";

/** One independent Redis, however it is reached. */
export interface Endpoint {
  /** The endpoint's name in votes, errors and events. It must contain no secret. */
  readonly name: string;
  readonly dialect: Dialect;
  /**
   * Whether every reply is the server's own reply to this one attempt. Leave it out where a client in between may retry
   * or invent replies: the library then uses only scripts whose success is an unguessable echo. Default false.
   */
  readonly exactReplies?: boolean;
  /**
   * Sends one command, once, and resolves with Redis's reply. Rejects if there is no reply, or if the reply is an error. It must
   * settle soon after `signal` aborts. A command counts as sent, and is undone if it fails, unless the error is an
   * `EndpointError` with `unsent`.
   *
   * @param onSent for the event `request` only. An endpoint that may keep commands waiting calls it when the command leaves,
   * with the number of commands in its request. 0: another command of the request reports it. Without a call, the command
   * counts as a request of its own, from the call of `send` to its end.
   */
  send(command: Command, signal: AbortSignal, onSent?: (commands: number) => void): Promise<unknown>;
  /**
   * Subscribes to a channel, and resolves with a stream of server-sent events as Upstash's `/subscribe` sends them. It ends
   * when `signal` aborts. Leave it out where there are no streams: waiters then poll.
   */
  subscribe?(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** The callers that wait for a command. In Node, a signal for each round costs as much as the rest of a small request. */
export interface Caller {
  /** Whether it waits no longer. */
  readonly hasGivenUp: boolean;
  /** Calls `listener` as soon as nobody waits any longer. The returned function cancels that. */
  onGiveUp(listener: () => void): () => void;
  /** Aborts as soon as it waits no longer. Made when it is needed. */
  readonly signal: AbortSignal;
}

/** A `send` that needs no signal for each caller. A user's wrapper around it is none. */
interface LightSend {
  readonly light: (command: Command, caller: Caller, onSent?: SentHook) => Promise<unknown>;
}

/** See `Endpoint.send`. */
export type SentHook = (commands: number) => void;

/** A `send` of an endpoint, from one that needs no signal for each caller. */
export function sendOf(light: LightSend["light"]): Endpoint["send"] & LightSend {
  // A caller in JavaScript may give no signal.
  const send: Endpoint["send"] = (command, signal = new AbortController().signal, onSent) => {
    const caller: Caller = {
      get hasGivenUp() {
        return signal.aborted;
      },
      onGiveUp: (listener) => onAbort(signal, listener),
      signal,
    };
    return light(command, caller, onSent);
  };
  return Object.assign(send, { light });
}

/** Sends one command for a caller. */
export function sendFor(
  endpoint: Endpoint,
  command: Command,
  caller: Caller,
  onSent: SentHook | undefined,
): Promise<unknown> {
  const { light } = endpoint.send as Partial<LightSend>;
  return light ? light(command, caller, onSent) : endpoint.send(command, caller.signal, onSent);
}

/** The error of a command that its caller has given up before it was sent. */
export function unsentError(
  name: string,
  reason: string = "not sent in time: others were sent first, or there is no connection",
): EndpointError {
  return new EndpointError(name, "timeout", reason, { unsent: true });
}

/** The error of a command without an answer, after `signal` has aborted: with the reason of the signal. */
export function timeoutError(name: string, { reason }: AbortSignal): EndpointError {
  return new EndpointError(name, "timeout", reason instanceof Error ? reason.message : String(reason));
}

/** The dialect of the server at `host`: `upstash` for Upstash's hosts, else `redis`. */
export function dialectOf(host: string): Dialect {
  return /\.upstash\.io(:\d+)?$/.test(host) ? "upstash" : "redis";
}

/** @throws RangeError when it is not a valid one */
export function checkDialect(name: string, dialect: Dialect): Dialect {
  oneOf("upstash", "redis-8.4", "redis")(name, dialect as never);
  return dialect;
}

/** What every endpoint can be told. */
export const endpointSchema: Schema<{ name?: string | undefined; dialect?: Dialect | undefined }> = {
  name: typed("string"),
  dialect: checkDialect,
};

/**
 * A server's error text without secrets: cut where Redis or Upstash begin to quote the command, or where JSON begins,
 * in which secrets are escaped. The text contains none of `secrets` and has at most 200 characters.
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
