import { checkOptions, wrongType } from "../check.ts";
import { dialectOf, type Endpoint, endpointSchema } from "../endpoints/endpoint.ts";
import { type Emitter, Link, type LinkState, linkOf } from "./link.ts";
import { type SocketEndpointOptions, sendOver } from "./send.ts";
import type { Subscription, SubscriptionEvents } from "./subscriber.ts";

/** The part of a client of node-redis, or of its Cluster client, that this package uses. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  /** Sends one command. */
  sendCommand: unknown;
  /** Is not called: clients before version 5 do not have it. */
  withTypeMapping: unknown;
  duplicate: unknown;
}

/** Options of one command: those of a client of version 5 and later. */
interface CommandOptions {
  readonly abortSignal: AbortSignal;
  readonly typeMapping: object;
}

/** A client, with what its types do not show. */
interface Client extends Emitter {
  readonly isOpen: boolean;
  /** A Cluster client of version 5 does not have it. */
  readonly isReady?: boolean;
  readonly options?: { readonly socket?: { host?: string; port?: number; path?: string } };
  sendCommand(command: readonly string[], options: CommandOptions): Promise<unknown>;
  duplicate(options: object): Client;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  destroy(): void;
}

/** A Cluster client. */
interface Cluster extends Emitter {
  readonly isOpen: boolean;
  readonly masters: readonly { readonly address: string }[];
  nodeClient: unknown;
  sendCommand(
    key: string | undefined,
    isReadonly: boolean,
    command: readonly string[],
    options: CommandOptions,
  ): Promise<unknown>;
}

/**
 * An endpoint over a connected client of node-redis 5 or later of your own, or over its Cluster client. These never send a
 * command again that a server may have executed, so replies are exact.
 *
 * While the client is not connected, commands wait for it, at most for their timeout; from a second after a connection
 * broke, they fail at once. None stays in its queue. For `wakeUp`, a duplicate of the client is connected while somebody
 * waits; with a Cluster client, waiters poll.
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
  const cluster = "nodeClient" in client ? (client as unknown as Cluster) : undefined;
  const single = client as unknown as Client;
  const address = cluster ? (cluster.masters[0]?.address ?? "node-redis") : addressOf(single);
  const name = options.name ?? address;
  const dialect = options.dialect ?? dialectOf(address);
  const link = linkOf(single, makeLink);

  const send = sendOver(name, link, (command, signal) => {
    const commandOptions = { abortSignal: signal.abortSignal, typeMapping: {} };
    return cluster
      ? cluster.sendCommand(keyOf(command), false, command, commandOptions)
      : single.sendCommand(command, commandOptions);
  });
  return { name, dialect, exactReplies: true, send, ...(!cluster && { subscribe: link.subscribe }) };
}

/** @throws TypeError */
function checkClient(client: NodeRedisClient): void {
  // Not shown: it may have a password.
  if (typeof client === "string") throw new TypeError("not a URL: nodeRedisEndpoint(createClient({ url }))");
  const other = Object(client) as object;
  // A pool does not say whether it is connected; Sentinel's client sends again.
  const isClient = "withTypeMapping" in other && ("isReady" in other || "nodeClient" in other);
  if (isClient && !("getSentinelNode" in other)) return;
  if ("status" in other && "call" in other) throw new TypeError("this is ioredis: ioredisEndpoint(client)");
  if ("createScript" in other) throw new TypeError("this is @upstash/redis: upstashEndpoint(client)");
  throw wrongType("the client", client, "a client or Cluster client of node-redis 5 or later");
}

function addressOf({ options }: Client): string {
  const { path, host = "localhost", port = 6379 } = options?.socket ?? {};
  return path ?? `${host}:${port}`;
}

/** The key by which a Cluster routes a command: the first one of a script, else the first argument. */
function keyOf([name = "", ...rest]: readonly string[]): string | undefined {
  return name.startsWith("EVAL") ? rest[2] : rest[0];
}

function makeLink(client: Client): Link {
  const state: LinkState = {
    readyEvent: "nodeClient" in client ? "connect" : "ready",
    brokenEvent: "reconnecting",
    // A Cluster client does not say which of its nodes are connected: the signal takes a command out of their queues.
    isReady: () => client.isReady ?? client.isOpen,
    isClosed: () => !client.isOpen,
  };
  return new Link(client, state, (events) => subscriptionOf(client, events));
}

function subscriptionOf(client: Client, { onMessage, onEnd }: SubscriptionEvents): Subscription {
  const socket = { ...client.options?.socket, reconnectStrategy: false };
  const duplicate = client.duplicate({ socket });
  let isConnecting = true;
  let isClosed = false;
  const close = () => {
    isClosed = true;
    // Destroyed before, it would connect all the same, and stay.
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
  // In the order of the calls; and the same listener, so that a channel that is subscribed again meanwhile stays.
  const onText = (text: string, channel: string) => onMessage(channel, text);
  return {
    subscribe: (channel) => connected.then(() => duplicate.subscribe(channel, onText)),
    unsubscribe: (channel) => connected.then(() => duplicate.unsubscribe(channel, onText)),
    close,
  };
}
