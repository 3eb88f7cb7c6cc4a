import { checkOptions, wrongType } from "../check/check.ts";
import { dialectOf, type Endpoint, endpointSchema } from "../endpoints/endpoint.ts";
import { type Emitter, Link, type LinkState, linkOf } from "./link.ts";
import { type SocketEndpointOptions, sendOver } from "./send.ts";
import type { Subscription, SubscriptionEvents } from "./subscriber.ts";

/** The part of a client of node-redis, or of its Cluster or Sentinel client or its pool, that this package uses. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  /** Sends one command. */
  sendCommand: unknown;
  /** Is not called: clients before version 5 do not have it. */
  withTypeMapping: unknown;
}

/** Options of one command: the members of a client of version 5 and later. */
interface CommandOptions {
  readonly abortSignal: AbortSignal;
  readonly typeMapping: object;
}

/** A client of any kind. */
interface AnyClient extends Emitter {
  readonly isOpen: boolean;
  /** A Cluster client of version 5 and a pool do not have it. */
  readonly isReady?: boolean;
}

/** A client with one connection, with what its types do not show. */
interface Client extends AnyClient {
  readonly options?: { readonly socket?: { host?: string; port?: number; path?: string } };
  sendCommand(command: readonly string[], options: CommandOptions): Promise<unknown>;
  duplicate(options: object): Client;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  destroy(): void;
}

/** A Cluster client. */
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

/** A client that asks sentinels which server is the primary. */
interface Sentinel extends AnyClient {
  getMasterNode(): { readonly host: string; readonly port: number } | undefined;
  getSentinelNode: unknown;
  sendCommand(isReadonly: boolean, command: readonly string[], options: CommandOptions): Promise<unknown>;
}

/** A pool of clients. */
interface Pool extends AnyClient {
  clientsInUse: unknown;
  sendCommand(command: readonly string[], options: CommandOptions): Promise<unknown>;
}

/** Sends one command through a client. */
type Sender = (command: readonly string[], options: CommandOptions) => Promise<unknown>;

/**
 * An endpoint over a connected client of node-redis 5 or later of your own, over its Cluster or Sentinel client, or over
 * its pool. Replies are exact, because these never send a command again that a server may have executed. The Sentinel client
 * does, so everything is sent through it as a script that recognises its own earlier execution.
 *
 * While the client is not connected, commands wait for it, at most for their timeout. From one second after the connection
 * broke, they fail at once. None stays in its queue. For `wakeUp`, a duplicate of a client with one connection is connected
 * while somebody waits. With any other client, waiters poll.
 *
 * @throws TypeError when `client` is not a client of node-redis 5 or later
 *
 * @example
 * const client = await createClient({ url: "redis://localhost" }).on("error", console.error).connect();
 * new Redlock({ endpoints: [nodeRedisEndpoint(client)] })
 */
export function nodeRedisEndpoint(client: NodeRedisClient, options: SocketEndpointOptions = {}): Endpoint {
  checkClient(client);
  checkOptions("nodeRedisEndpoint", options, endpointSchema);
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

/** The differences between the kinds of clients. */
interface Kind {
  readonly sender: Sender;
  /** Where it sends commands to, as far as it says so. */
  readonly address: string;
  readonly exactReplies: boolean;
  /** Whether a duplicate of it can subscribe. */
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

/** A Cluster client follows a few redirections. An error that is one more of them passes when the slots have moved. */
function throwRedirection(error: Error): never {
  throw /^(MOVED|ASK) /.test(error.message) ? new Error(`redirected too often: ${error.message}`) : error;
}

/** @throws TypeError */
function checkClient(client: NodeRedisClient): void {
  // Not shown: it may have a password.
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

/** The key by which a Cluster routes a command: the first one of a script, else the first argument. */
function keyOf([name = "", ...rest]: readonly string[]): string | undefined {
  return name.startsWith("EVAL") ? rest[2] : rest[0];
}

function makeLink(client: AnyClient): Link {
  const state: LinkState = {
    readyEvent: isCluster(client) ? "connect" : "ready",
    brokenEvent: "reconnecting",
    // A Cluster client or a pool does not say which of its connections stand. A signal takes a command out of their queues.
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
  // In the order of the calls, and with one listener, so that a channel that is subscribed again meanwhile stays.
  const onText = (text: string, channel: string) => onMessage(channel, text);
  return {
    subscribe: (channel) => connected.then(() => duplicate.subscribe(channel, onText)),
    unsubscribe: (channel) => connected.then(() => duplicate.unsubscribe(channel, onText)),
    close,
  };
}
