// Records what a library sends, and sends the same again without the library: what it costs beyond its requests.
import { peers } from "./installed.mjs";

const { Redis } = peers;
/** What all clients of node-redis have in common. */
let nodeRedis = peers.createClient();
while (!Object.hasOwn(nodeRedis, "sendCommand")) nodeRedis = Object.getPrototypeOf(nodeRedis);

/**
 * What `action` sends through `fetch` and through clients with sockets, by destination.
 *
 * @returns {Promise<(() => Promise<unknown>)[][]>} for each destination its requests, each as a function that sends it again
 */
async function requestsOf(action) {
  const byDestination = new Map();
  const add = (destination, again) => {
    byDestination.set(destination, [...(byDestination.get(destination) ?? []), again]);
  };
  const { fetch } = globalThis;
  const { sendCommand } = Redis.prototype;
  const sendArguments = nodeRedis.sendCommand;
  globalThis.fetch = (url, { signal: _, ...init }) => {
    add(new URL(url).host, async () => (await fetch(url, init)).json());
    return fetch(url, init);
  };
  Redis.prototype.sendCommand = function (command, ...rest) {
    const { name, args } = command;
    add(this, () => this.call(name, ...args));
    return sendCommand.call(this, command, ...rest);
  };
  nodeRedis.sendCommand = function (args, ...rest) {
    add(this, () => this.sendCommand(args));
    return sendArguments.call(this, args, ...rest);
  };
  try {
    await action();
  } finally {
    globalThis.fetch = fetch;
    Redis.prototype.sendCommand = sendCommand;
    nodeRedis.sendCommand = sendArguments;
  }
  return [...byDestination.values()];
}

/** A function that sends again what one acquire and one release of this client send: in turn, to all destinations at once. */
export async function replayOf(client) {
  let release;
  const acquiring = await requestsOf(async () => {
    release = await client.acquire();
  });
  const releasing = await requestsOf(() => release());
  const send = (destinations) =>
    Promise.all(
      destinations.map(async (requests) => {
        for (const again of requests) await again();
      }),
    );
  return async () => {
    await send(acquiring);
    await send(releasing);
  };
}
