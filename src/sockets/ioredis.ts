import { wrongType } from "../check/check.ts";
import { checkEndpointOptions, dialectOf, type Endpoint, endpointSchema } from "../endpoints/endpoint.ts";
import { type Emitter, Link, type LinkState, linkOf } from "./link.ts";
import { type SocketEndpointOptions, sendOver } from "./send.ts";
import type { Subscription, SubscriptionEvents } from "./subscriber.ts";

/** The used part of a client of ioredis, or of its Cluster client. */
export interface IoredisClient {
  readonly status: string;
  readonly options: object;
  readonly isCluster: boolean;
  /** Sends one command. */
  call(command: string, ...args: string[]): Promise<unknown>;
  /** Connects a lazy client. */
  connect(): Promise<unknown>;
}

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
 * An endpoint over your client of ioredis 5 or 6, or its Cluster client. docs/options.md describes its connection, and
 * why a failover by `sentinels` can lose a lock. Make the client with `maxRetriesPerRequest: 0`, because a client that
 * sends commands again costs two more of them per acquire.
 *
 * @throws TypeError `client` is not a client of ioredis, returns numbers as strings, or connects to replicas
 *
 * @example
 * new Redlock({ endpoints: [ioredisEndpoint(new Redis("redis://localhost", { maxRetriesPerRequest: 0 }))] })
 */
export function ioredisEndpoint(client: IoredisClient, options: SocketEndpointOptions = {}): Endpoint {
  checkClient(client);
  checkEndpointOptions("ioredisEndpoint", options, endpointSchema);
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

function checkClient(client: IoredisClient): void {
  // It may have a password.
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
 * In a pipeline, a command waits for the replies to earlier ones, even if its caller has given up. Before ioredis 5.11,
 * a Cluster's pipeline mixes scripts for several nodes, which refuse them with MOVED.
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
    disconnectTimeout: 0,
  });
  // Otherwise ioredis prints it.
  duplicate.on("error", () => undefined);
  duplicate.on("end", onEnd);
  duplicate.on("message", onMessage as (argument?: unknown) => void);
  return {
    subscribe: (channel) => duplicate.subscribe(channel),
    unsubscribe: (channel) => duplicate.unsubscribe(channel),
    close: () => duplicate.disconnect(),
  };
}
