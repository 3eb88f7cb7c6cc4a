import { wrongType } from "../check/check.ts";
import { checkEndpointOptions, dialectOf, type Endpoint, endpointSchema } from "../endpoints/endpoint.ts";
import { type Emitter, Link, type LinkState, linkOf } from "./link.ts";
import { type SocketEndpointOptions, sendOver } from "./send.ts";
import type { Subscription, SubscriptionEvents } from "./subscriber.ts";

/** The used part of a client of node-redis, its Cluster or Sentinel client, or its pool. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  sendCommand: unknown;
  /** Not called: clients before version 5 lack it. */
  withTypeMapping: unknown;
}

interface CommandOptions {
  readonly abortSignal: AbortSignal;
  readonly typeMapping: object;
}

interface AnyClient extends Emitter {
  readonly isOpen: boolean;
  /** A Cluster client of version 5 and a pool lack it. */
  readonly isReady?: boolean;
}

interface Client extends AnyClient {
  readonly options?: { readonly socket?: { host?: string; port?: number; path?: string } };
  sendCommand(command: readonly string[], options: CommandOptions): Promise<unknown>;
  duplicate(options: object): Client;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  destroy(): void;
}

interface Cluster extends AnyClient {
  readonly masters: readonly { readonly address: string }[];
  nodeClient: unknown;
  sendCommand(
    key: string | undefined,
    isReadonly: boolean,
    command: readonly string[],
    options: CommandOptions,
  ): Promise<unknown>;
}

interface Sentinel extends AnyClient {
  getMasterNode(): { readonly host: string; readonly port: number } | undefined;
  getSentinelNode: unknown;
  sendCommand(isReadonly: boolean, command: readonly string[], options: CommandOptions): Promise<unknown>;
}

interface Pool extends AnyClient {
  clientsInUse: unknown;
  sendCommand(command: readonly string[], options: CommandOptions): Promise<unknown>;
}

type Sender = (command: readonly string[], options: CommandOptions) => Promise<unknown>;

/**
 * An endpoint over your connected client of node-redis 5 or later, its Cluster or Sentinel client, or its pool.
 * docs/options.md describes its connection, and why a failover by sentinels can lose a lock.
 *
 * @throws TypeError `client` is not a client of node-redis 5 or later
 *
 * @example
 * const client = await createClient({ url: "redis://localhost" }).on("error", console.error).connect();
 * new Redlock({ endpoints: [nodeRedisEndpoint(client)] })
 */
export function nodeRedisEndpoint(client: NodeRedisClient, options: SocketEndpointOptions = {}): Endpoint {
  checkClient(client);
  checkEndpointOptions("nodeRedisEndpoint", options, endpointSchema);
  const own = client as unknown as AnyClient;
  const { address, sender, exactReplies, hasStreams } = kindOf(own);
  const name = options.name ?? address;
  const dialect = options.dialect ?? dialectOf(address);
  const link = linkOf(own, makeLink);

  const call = (command: readonly string[], abortSignal: AbortSignal) =>
    sender(command, { abortSignal, typeMapping: {} });
  const send = sendOver(name, link, call);
  return { name, dialect, exactReplies, send, ...(hasStreams && { subscribe: link.subscribe }) };
}

interface Kind {
  readonly sender: Sender;
  readonly address: string;
  readonly exactReplies: boolean;
  readonly hasStreams: boolean;
}

function kindOf(client: AnyClient): Kind {
  const unnamed = { address: "node-redis", exactReplies: true, hasStreams: false };
  if (isCluster(client)) {
    const sender: Sender = (command, options) =>
      client.sendCommand(keyOf(command), false, command, options).catch(throwRedirection);
    const [primary = unnamed] = client.masters;
    return { ...unnamed, sender, address: primary.address };
  }
  if (isSentinel(client)) {
    const sender: Sender = (command, options) => client.sendCommand(false, command, options);
    const primary = client.getMasterNode();
    const address = primary ? `${primary.host}:${primary.port}` : unnamed.address;
    return { ...unnamed, sender, address, exactReplies: false };
  }
  const one = client as Client | Pool;
  const sender: Sender = (command, options) => one.sendCommand(command, options);
  return isPool(one)
    ? { ...unnamed, sender }
    : { ...unnamed, sender, address: addressOf(one), hasStreams: true };
}

const isCluster = (client: object): client is Cluster => "nodeClient" in client;
const isSentinel = (client: object): client is Sentinel => "getSentinelNode" in client;
const isPool = (client: object): client is Pool => "clientsInUse" in client;

/** After a few redirections, the Cluster client throws the next one. It passes when the slots have moved. */
function throwRedirection(error: Error): never {
  throw /^(MOVED|ASK) /.test(error.message) ? new Error(`redirected too often: ${error.message}`) : error;
}

function checkClient(client: NodeRedisClient): void {
  // It may have a password.
  if (typeof client === "string") throw new TypeError("not a URL: nodeRedisEndpoint(createClient({ url }))");
  const other = Object(client) as object;
  const isClient = "isReady" in other || isCluster(other) || isPool(other);
  // A client that a Sentinel client lends has no events.
  if (isClient && "withTypeMapping" in other && "on" in other) return;
  if ("status" in other && "call" in other) throw new TypeError("this is ioredis: ioredisEndpoint(client)");
  if ("createScript" in other) throw new TypeError("this is @upstash/redis: upstashEndpoint(client)");
  throw wrongType("the client", client, "a client of node-redis 5 or later");
}

function addressOf({ options }: Client): string {
  const { path, host = "localhost", port = 6379 } = options?.socket ?? {};
  return path ?? `${host}:${port}`;
}

/** By which a Cluster routes: a script's first key, else the first argument. */
function keyOf([name = "", ...rest]: readonly string[]): string | undefined {
  return name.startsWith("EVAL") ? rest[2] : rest[0];
}

function makeLink(client: AnyClient): Link {
  const state: LinkState = {
    readyEvent: isCluster(client) ? "connect" : "ready",
    brokenEvent: "reconnecting",
    // A Cluster client or a pool does not say which connections stand. A signal takes commands out of their queues.
    isReady: () => client.isReady ?? client.isOpen,
    isClosed: () => !client.isOpen,
  };
  return new Link(client, state, (events) => subscriptionOf(client as Client, events));
}

function subscriptionOf(client: Client, { onMessage, onEnd }: SubscriptionEvents): Subscription {
  const socket = { ...client.options?.socket, reconnectStrategy: false };
  const duplicate = client.duplicate({ socket });
  let isConnecting = true;
  let isClosed = false;
  const close = () => {
    isClosed = true;
    // Destroyed before, it would still connect, and stay.
    if (!isConnecting && duplicate.isOpen) duplicate.destroy();
  };
  duplicate.on("connect", () => {
    isConnecting = false;
    if (isClosed) close();
  });
  // Not each error ends the connection.
  const end = () => {
    close();
    onEnd();
  };
  duplicate.on("error", end);
  const connected = duplicate.connect();
  connected.catch(end);
  // One listener, in the order of the calls, so that a channel that is subscribed again meanwhile stays.
  const onText = (text: string, channel: string) => onMessage(channel, text);
  return {
    subscribe: (channel) => connected.then(() => duplicate.subscribe(channel, onText)),
    unsubscribe: (channel) => connected.then(() => duplicate.unsubscribe(channel, onText)),
    close,
  };
}
