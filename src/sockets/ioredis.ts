import { checkOptions, wrongType } from "../check/check.ts";
import { dialectOf, type Endpoint, endpointSchema } from "../endpoints/endpoint.ts";
import { type Emitter, Link, type LinkState, linkOf } from "./link.ts";
import { type SocketEndpointOptions, sendOver } from "./send.ts";
import type { Subscription, SubscriptionEvents } from "./subscriber.ts";

/** The part of a client of ioredis, or of its Cluster client, that this package uses. */
export interface IoredisClient {
  readonly status: string;
  readonly options: object;
  readonly isCluster: boolean;
  /** Sends one command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Connects a client that was made with `lazyConnect`. */
  connect(): Promise<unknown>;
}

/** The options of a client that matter here. */
interface IoredisOptions {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string | null;
  readonly name?: string | null;
  readonly maxRetriesPerRequest?: number | null;
  readonly autoResendUnfulfilledCommands?: boolean;
  readonly reconnectOnError?: unknown;
  readonly stringNumbers?: boolean;
  readonly enableAutoPipelining?: boolean;
  readonly role?: string;
  readonly redisOptions?: IoredisOptions;
}

/** A client, with what its types do not show. */
interface Client extends IoredisClient, Emitter {
  readonly options: IoredisOptions;
  readonly stream?: { readonly writable: boolean };
  readonly startupNodes?: readonly unknown[];
  sendCommand(command: object): Promise<unknown>;
  duplicate(options: object): Client;
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  disconnect(): void;
}

/**
 * An endpoint over a client of ioredis 5 or 6 of your own, or over its Cluster client. A client with `sentinels` works as any
 * other one, but a failover can lose a lock, because Redis replicates asynchronously.
 *
 * By default ioredis sends a command again whose connection broke. The endpoint stays correct: everything is sent as a
 * script that recognises its own earlier execution. A client that never sends twice saves that: make it with
 * `maxRetriesPerRequest: 0` or `autoResendUnfulfilledCommands: false`, and without `reconnectOnError`. A Cluster client
 * always sends again. Commands go past `enableAutoPipelining`.
 *
 * While the client is not connected, commands wait for it, at most for their timeout. From one second after the connection
 * broke, they fail at once. None is queued. A lazy client is connected by the first one. For `wakeUp`, a duplicate of the
 * client is connected while somebody waits. With a Cluster client, waiters poll.
 *
 * @throws TypeError when `client` is not a client of ioredis, returns numbers as strings, or connects to replicas
 *
 * @example
 * new Redlock({ endpoints: [ioredisEndpoint(new Redis("redis://localhost", { maxRetriesPerRequest: 0 }))] })
 */
export function ioredisEndpoint(client: IoredisClient, options: SocketEndpointOptions = {}): Endpoint {
  checkClient(client);
  checkOptions("ioredisEndpoint", options, endpointSchema);
  const ioredis = client as Client;
  const { isCluster, options: own } = ioredis;
  const address = addressOf(ioredis);
  const name = options.name ?? address;
  const dialect = options.dialect ?? dialectOf(address);
  const link = linkOf(ioredis, makeLink);
  const forgets = !isCluster && own.autoResendUnfulfilledCommands === false;
  const exactReplies = !isCluster && !own.reconnectOnError && (forgets || own.maxRetriesPerRequest === 0);

  const sender = own.enableAutoPipelining ? pastAutoPipelines(ioredis) : ioredis;
  const call = ([command, ...args]: readonly string[]) => {
    const reply = sender.call(command!, ...args);
    return forgets ? link.whileConnected(reply) : reply;
  };
  const send = sendOver(name, link, call);
  return { name, dialect, exactReplies, send, ...(!isCluster && { subscribe: link.subscribe }) };
}

/** @throws TypeError */
function checkClient(client: IoredisClient): void {
  // Not shown: it may have a password.
  if (typeof client === "string") throw new TypeError("not a URL: ioredisEndpoint(new Redis(url))");
  if (typeof client?.call !== "function" || typeof client.status !== "string") {
    const other = Object(client) as object;
    if ("withTypeMapping" in other) throw new TypeError("this is node-redis: nodeRedisEndpoint(client)");
    if ("createScript" in other) throw new TypeError("this is @upstash/redis: upstashEndpoint(client)");
    throw wrongType("the client", client, "a client of ioredis: new Redis(url)");
  }
  const { stringNumbers, redisOptions, role } = client.options as IoredisOptions;
  if (stringNumbers || redisOptions?.stringNumbers) {
    throw new TypeError(
      "with stringNumbers replies are not Redis's: client.duplicate({ stringNumbers: false })",
    );
  }
  if (role === "slave") {
    throw new TypeError('this client connects to replicas, which take no writes: { role: "master" }');
  }
}

/**
 * A client whose `call` goes past automatic pipelines. In a pipeline, a command waits for the replies to earlier ones, even
 * when its caller has given up. Before ioredis 5.11, a pipeline of a Cluster client mixes scripts for several nodes, which
 * refuse them with MOVED.
 */
function pastAutoPipelines(client: Client): Client {
  return Object.create(client, {
    options: { value: { ...client.options, enableAutoPipelining: false } },
    // The client itself must send, because its notes on its commands would otherwise stay here.
    sendCommand: { value: (command: object) => client.sendCommand(command) },
  }) as Client;
}

function addressOf({ options, startupNodes }: Client): string {
  const [node = options] = (startupNodes ?? []) as (IoredisOptions | string | number)[];
  if (typeof node !== "object") return String(node).replace(/^.*@|^\w+:\/\//, "");
  const { path, name, host = "localhost", port = 6379 } = node;
  return path ?? name ?? `${host}:${port}`;
}

function makeLink(client: Client): Link {
  const state: LinkState = {
    readyEvent: "ready",
    brokenEvent: "close",
    // While a connection closes, new commands would be queued.
    isReady: () => client.status === "ready" && client.stream?.writable !== false,
    isClosed: () => client.status === "end",
    connect() {
      // Its errors are events.
      if (client.status === "wait") client.connect().catch(() => undefined);
    },
  };
  return new Link(client, state, (events) => subscriptionOf(client, events));
}

function subscriptionOf(client: Client, { onMessage, onEnd }: SubscriptionEvents): Subscription {
  const duplicate = client.duplicate({
    lazyConnect: false,
    retryStrategy: null,
    enableOfflineQueue: true,
    // A closed client has nothing to wait for.
    disconnectTimeout: 0,
  });
  // Without a listener ioredis prints it. The end that follows is enough.
  duplicate.on("error", () => undefined);
  duplicate.on("end", onEnd);
  duplicate.on("message", onMessage as (argument?: unknown) => void);
  return {
    subscribe: (channel) => duplicate.subscribe(channel),
    unsubscribe: (channel) => duplicate.unsubscribe(channel),
    close: () => duplicate.disconnect(),
  };
}
