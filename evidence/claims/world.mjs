import { setTimeout as sleep } from "node:timers/promises";
import { startProxy } from "./proxy.mjs";

/**
 * What a row's programs use: three real redis-servers, each also behind a local endpoint with faults, and clients and
 * proxies that are closed when the program ends.
 */
export class World {
  /** A name that no other program uses, for keys and resources. */
  key;
  /** The exports of the other packages. */
  peers;
  servers;
  #closing = [];

  constructor({ key, peers, servers }) {
    Object.assign(this, { key, peers, servers });
  }

  /** A proxy in front of a server's Redis. */
  async redisProxy(server) {
    const proxy = await startProxy(Number(new URL(server.redisUrl).port));
    this.#closing.push(() => proxy.close());
    return proxy;
  }

  /** A connected client of ioredis for a server or a proxy. Commands fail at once while the connection is broken. */
  async redis(to, options = {}) {
    const port = to.port ?? Number(new URL(to.redisUrl).port);
    const client = new this.peers.Redis(port, "127.0.0.1", {
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      ...options,
    });
    // Without a listener ioredis prints every error of the connection.
    client.on("error", () => undefined);
    this.#closing.push(() => client.disconnect());
    await new Promise((resolve) => client.once("ready", resolve));
    return client;
  }

  /** Registers what to do when the program has ended. */
  onEnd(action) {
    this.#closing.push(action);
  }

  async close() {
    for (const action of this.#closing.splice(0).reverse()) await action();
    for (const { faults } of this.servers) faults.clear();
  }
}

/** Lets somebody else hold a key at a server, for `ms`. */
export function rival(server, key, ms) {
  return server.execute(["SET", key, "somebody else", "PX", ms]);
}

/** How a promise stands after at most `ms`: pending, fulfilled with a value, or rejected with an error; and after what time. */
export async function within(ms, promise) {
  const start = performance.now();
  const settled = promise.then(
    (value) => ({ state: "fulfilled", value }),
    (error) => ({ state: "rejected", error }),
  );
  const timer = new AbortController();
  const late = sleep(ms, { state: "pending" }, { signal: timer.signal }).catch(() => undefined);
  const outcome = await Promise.race([settled, late]);
  timer.abort();
  return { ...outcome, ms: Math.round(performance.now() - start) };
}

/** How often a server has executed these commands, those inside of scripts included. */
export async function callsOf(server, ...commands) {
  const lines = String(await server.execute(["INFO", "commandstats"])).split(/\r?\n/);
  const callsIn = (command) =>
    Number(/calls=(\d+)/.exec(lines.find((line) => line.startsWith(`cmdstat_${command}:`)) ?? "")?.[1] ?? 0);
  return commands.reduce((sum, command) => sum + callsIn(command), 0);
}

/** In words what became of a promise. */
export function described({ state, value, error, ms }) {
  if (state === "pending") return `pending after ${ms} ms`;
  if (state === "fulfilled")
    return `${value === undefined ? "done" : (JSON.stringify(value) ?? typeof value)} after ${ms} ms`;
  return `${error.code ?? error.name ?? "error"}: ${String(error.message).slice(0, 90)}`;
}
