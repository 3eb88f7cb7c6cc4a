import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * A TCP proxy in front of a server on loopback, for Redis and for HTTP alike. What passes it can be late or lost: the
 * fields may be set at any time, and concern the bytes that come then.
 *
 * @typedef {object} Proxy
 * @property {number} port
 * @property {number} requestDelay ms by which bytes to the server are late
 * @property {number} replyDelay ms by which bytes from the server are late
 * @property {"requests" | "replies" | undefined} loses what is read and goes nowhere, while connections stay open
 * @property {number} rate bytes that pass it in a ms, in each direction and by all connections together
 * @property {(still: boolean) => void} still lets nothing pass, and loses nothing, until it is called with false
 * @property {(down: boolean) => void} down breaks all connections, and each new one, until it is called with false
 * @property {() => void} close
 */

/** @returns {Promise<Proxy>} */
export async function startProxy(target) {
  const sockets = new Set();
  let isDown = false;
  let isStill = false;
  const [requests, replies] = [{ free: 0 }, { free: 0 }];
  const server = createServer((client) => {
    if (isDown) return client.destroy();
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      if (isStill) socket.pause();
      sockets.add(socket);
      // A broken connection is what the proxy is for; `close` follows.
      socket.on("error", () => socket.destroy());
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    forward(client, upstream, (bytes) => [
      proxy.loses === "requests",
      proxy.requestDelay + wait(requests, bytes),
    ]);
    forward(upstream, client, (bytes) => [
      proxy.loses === "replies",
      proxy.replyDelay + wait(replies, bytes),
    ]);
  });
  /** ms until so many bytes more have passed in this direction. */
  function wait(direction, bytes) {
    const now = performance.now();
    direction.free = Math.max(now, direction.free) + bytes / proxy.rate;
    return direction.free - now;
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy = {
    port: server.address().port,
    requestDelay: 0,
    replyDelay: 0,
    rate: Infinity,
    loses: undefined,
    still(still) {
      isStill = still;
      for (const socket of sockets) still ? socket.pause() : socket.resume();
    },
    down(down) {
      isDown = down;
      if (down) for (const socket of sockets) socket.destroy();
    },
    close() {
      proxy.down(true);
      server.close();
    },
  };
  return proxy;
}

function forward(from, to, fateOf) {
  // What comes later on a connection does not overtake what is late.
  let late = Promise.resolve();
  let waiting = 0;
  from.on("data", (bytes) => {
    const [isLost, delay] = fateOf(bytes.length);
    if (isLost) return;
    if (delay === 0 && waiting === 0) return to.write(bytes);
    waiting += 1;
    late = Promise.all([late, sleep(delay)]).then(() => {
      waiting -= 1;
      if (to.writable) to.write(bytes);
    });
  });
}
