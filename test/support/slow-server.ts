import { vi } from "vitest";
import { memoryEndpoint, type VirtualTime } from "../../local/src/memory/index.ts";
import { type Command, type Endpoint, httpEndpoint, upstashEndpoint } from "../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../src/sockets/index.ts";

// A server that takes its time for each command, behind a link that is slow or stands still, and the clients that a user may
// have of it; all in virtual time. Whatever was written is executed, in the order in which it was written, even if nobody waits.

/** What a server and the link to it can do. */
export interface Speed {
  /** ms that a command takes the server. Default 0.02. */
  readonly cost?: number;
  /** Bytes that pass the link in a ms, in each direction. Default: as many as there are. */
  readonly rate?: number;
  /** ms that bytes take from end to end. Default 0.5. */
  readonly delay?: number;
}

/** A client of a server. */
export interface SlowClient {
  readonly endpoint: Endpoint;
  /** Sends a command of the application's own by the client that the endpoint is made of. Undefined: there is none. */
  readonly send: ((command: Command) => Promise<unknown>) | undefined;
  /** How many commands the client has not had an answer to. */
  readonly unanswered: number;
}

/** A server behind a link. */
export interface SlowServer {
  /** Its link stands still for so many ms from now. */
  stall(ms: number): void;
  client(kind: ClientKind): SlowClient;
}

/** How an endpoint is reached. */
export const clientKinds = ["HTTP", "ioredis", "ioredis, exact", "node-redis", "@upstash/redis"] as const;
export type ClientKind = (typeof clientKinds)[number];

/** Bytes of the headers of an HTTP request or response, TLS included. */
const headers = 500;

/** Starts a server. Servers of one test have different names. */
export function slowServer(runtime: VirtualTime, name: string, speed: Speed = {}): SlowServer {
  const { cost = 0.02, rate = Infinity, delay = 0.5 } = speed;
  const { engine } = memoryEndpoint({ name, dialect: "redis", runtime });
  let still = { from: 0, until: 0 };
  const free = { requests: 0, replies: 0, server: 0 };

  /** When bytes that are written now will have passed. */
  function pass(direction: "requests" | "replies", bytes: number): number {
    let begin = Math.max(runtime.elapsed, free[direction]);
    if (begin >= still.from && begin < still.until) begin = still.until;
    let end = begin + bytes / rate;
    if (begin < still.from && end > still.from) end += still.until - still.from;
    free[direction] = end;
    return end + delay;
  }

  /** Executes one command at a time. */
  function execute(command: Command): Promise<unknown> {
    free.server = Math.max(runtime.elapsed, free.server) + cost;
    return new Promise((resolve, reject) => {
      runtime.at(free.server, () => {
        try {
          resolve(engine.execute(command));
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  /** Sends commands together. Resolves with their replies, or errors, once the last one has come. */
  async function exchange(commands: readonly Command[], bytes: number): Promise<unknown[]> {
    await arrival(pass("requests", bytes + commands.reduce((sum, command) => sum + sizeOf(command), 0)));
    const replies = await Promise.all(commands.map((command) => execute(command).catch((error) => error)));
    await arrival(pass("replies", bytes + 30 * commands.length));
    return replies;
  }
  const arrival = (at: number) => new Promise<void>((resolve) => void runtime.at(at, resolve));

  return {
    stall(ms) {
      still = { from: runtime.elapsed, until: runtime.elapsed + ms };
      for (const direction of ["requests", "replies"] as const) {
        if (free[direction] > runtime.elapsed) free[direction] += ms;
      }
    },
    client: (kind) => clientOf(kind, name, exchange),
  };
}

type Exchange = (commands: readonly Command[], bytes: number) => Promise<unknown[]>;

/** As many bytes as Redis's protocol has for it. */
function sizeOf(command: Command): number {
  return command.reduce((sum: number, word) => sum + String(word).length + 10, 6);
}

function clientOf(kind: ClientKind, name: string, exchange: Exchange): SlowClient {
  let unanswered = 0;
  const counted: Exchange = async (commands, bytes) => {
    unanswered += commands.length;
    const replies = await exchange(commands, bytes);
    unanswered -= commands.length;
    return replies;
  };
  const send = async (command: Command, bytes = 0) => {
    const [reply] = await counted([command], bytes);
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const made = {
    get unanswered() {
      return unanswered;
    },
  };
  if (kind === "HTTP") {
    answerFetch(name, counted);
    return Object.assign(made, {
      endpoint: httpEndpoint({ url: urlOf(name), token: "t", name }),
      send: undefined,
    });
  }
  if (kind === "@upstash/redis") {
    const client = {
      createScript: () => undefined,
      eval: (...args: [string, string[], unknown[]]) =>
        asSdk(() => send(scriptCommand("EVAL", ...args), headers)),
      evalsha: (...args: [string, string[], unknown[]]) =>
        asSdk(() => send(scriptCommand("EVALSHA", ...args), headers)),
    };
    return Object.assign(made, {
      endpoint: upstashEndpoint(client, { name }),
      send: (command: Command) => send(command, headers),
    });
  }
  const emitter = { on: () => undefined, off: () => undefined, listenerCount: () => 1 };
  const redis = { ...emitter, isOpen: true, isReady: true, options: {}, withTypeMapping: 1, duplicate: 1 };
  const nodeRedis = { ...redis, sendCommand: (command: Command) => send(command) };
  const ioredis = {
    ...emitter,
    status: "ready",
    isCluster: false,
    options: kind === "ioredis, exact" ? { maxRetriesPerRequest: 0 } : {},
    call: (...command: string[]) => send(command),
    connect: () => Promise.resolve(),
  };
  const endpoint =
    kind === "node-redis" ? nodeRedisEndpoint(nodeRedis, { name }) : ioredisEndpoint(ioredis, { name });
  return Object.assign(made, { endpoint, send });
}

const urlOf = (name: string) => `https://${name}.example`;

const scriptCommand = (operation: string, script: string, keys: string[], args: unknown[]): Command => [
  operation,
  script,
  keys.length,
  ...keys,
  ...(args as string[]),
];

/** As the SDK reports an error of Redis. */
async function asSdk(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    throw Object.assign(new Error((error as Error).message), { name: "UpstashError" });
  }
}

const servers = new Map<string, Exchange>();

/** Answers the global `fetch` for this server, until `vi.unstubAllGlobals()`. A request that was sent is executed even if it is aborted. */
function answerFetch(name: string, exchange: Exchange): void {
  servers.set(urlOf(name), exchange);
  vi.stubGlobal("fetch", (url: string, { body, signal }: RequestInit) => {
    const isPipeline = url.endsWith("/pipeline");
    const send = servers.get(url.replace(/\/(pipeline)?$/, ""))!;
    const commands: Command[] = isPipeline ? JSON.parse(String(body)) : [JSON.parse(String(body))];
    return new Promise((resolve, reject) => {
      signal!.addEventListener("abort", () => reject(signal!.reason));
      void send(commands, headers).then((replies) => {
        const answers = replies.map((reply) =>
          reply instanceof Error ? { error: reply.message } : { result: reply },
        );
        const status = !isPipeline && replies[0] instanceof Error ? 400 : 200;
        resolve(Response.json(isPipeline ? answers : answers[0], { status }));
      });
    });
  });
}
