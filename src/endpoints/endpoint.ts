import { checkOptions, oneOf, type Schema, typed } from "../check/check.ts";
import { EndpointError, reasonOf } from "../errors/errors.ts";
import { onAbort } from "../runtime/abort.ts";

/** A Redis command: its name and arguments. */
export type Command = readonly (string | number)[];

/**
 * The commands that an endpoint understands. `redis`: any Redis from 6.2. `redis-8.4`: also `SET … IFEQ` and `DELEX`
 * (Redis 8.4, Valkey 9.2, or later). `upstash`: these, and a flag without which a script locks the whole database.
 */
export type Dialect = "upstash" | "redis-8.4" | "redis";

/** One independent Redis. */
export interface Endpoint {
  /** Appears in votes, errors and events, so it must contain no secret. */
  readonly name: string;
  readonly dialect: Dialect;
  /**
   * Whether every reply is the server's own reply to this one attempt. If a client in between may retry or invent
   * replies, leave it out: then only scripts are used, which echo an unguessable token. Default false.
   */
  readonly exactReplies?: boolean;
  /**
   * Sends one command, once, and resolves with Redis's reply. Rejects if there is none, if it is an error, and soon
   * after `signal` aborts. A failed command is undone, unless the error is an `EndpointError` with `unsent`.
   *
   * @param onSent for the event `request`, if commands may wait: call it when this one leaves, with the number of
   * commands in its request, or 0 if another command reports it
   */
  send(command: Command, signal: AbortSignal, onSent?: (commands: number) => void): Promise<unknown>;
  /**
   * Resolves with server-sent events as Upstash's `/subscribe` sends them, until `signal` aborts. Leave it out if there
   * are no streams: waiters then poll.
   */
  subscribe?(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** In Node, a signal for each round would cost as much as the rest of a small request. */
export interface Caller {
  readonly hasGivenUp: boolean;
  onGiveUp(listener: () => void): () => void;
  readonly signal: AbortSignal;
}

/** Needs no signal for each caller. A user's wrapper has none. */
interface LightSend {
  readonly light: (command: Command, caller: Caller, onSent?: SentHook) => Promise<unknown>;
}

export type SentHook = (commands: number) => void;

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

export function sendFor(
  endpoint: Endpoint,
  command: Command,
  caller: Caller,
  onSent: SentHook | undefined,
): Promise<unknown> {
  const { light } = endpoint.send as Partial<LightSend>;
  return light ? light(command, caller, onSent) : endpoint.send(command, caller.signal, onSent);
}

export function unsentError(
  name: string,
  reason: string = "not sent in time: others were sent first, or there is no connection",
): EndpointError {
  return new EndpointError(name, "timeout", reason, { unsent: true });
}

export function timeoutError(name: string, { reason }: AbortSignal): EndpointError {
  return new EndpointError(name, "timeout", reasonOf(reason));
}

export function dialectOf(host: string): Dialect {
  return /\.upstash\.io(:\d+)?$/.test(host) ? "upstash" : "redis";
}

export function checkDialect(name: string, dialect: Dialect): Dialect {
  oneOf("upstash", "redis-8.4", "redis")(name, dialect as never);
  return dialect;
}

export const endpointSchema: Schema<{ name?: string | undefined; dialect?: Dialect | undefined }> = {
  name: typed("string"),
  dialect: checkDialect,
};

/** Checks the options of an endpoint that is made of a client. */
export function checkEndpointOptions<Options extends object>(
  what: string,
  options: Options,
  schema: Schema<Options>,
): void {
  // The index, in `clients.map(ioredisEndpoint)`.
  if (typeof options === "number")
    throw new TypeError(`options must be an object: with map, write (client) => ${what}(client)`);
  checkOptions(what, options, schema);
}

/** Cut where Redis or Upstash quote the command, and where JSON begins, in which secrets are escaped. */
export function withoutSecrets(text: string, secrets: Command): string {
  let clean = text;
  // First, because half a secret would not be recognised.
  for (const secret of secrets) {
    if (typeof secret === "string" && secret.length >= 8) clean = clean.replaceAll(secret, "…");
  }
  const [said = ""] = clean.split(/,? (?:with args beginning|command was)|["[{]/);
  return said.slice(0, 200);
}
