import { connect, createServer, type Socket } from "node:net";
import { type LocalEndpoint, start } from "../../local/src/index.ts";
import { type Endpoint, httpEndpoint } from "../../src/index.ts";

/** A local endpoint, and the connections on which its clients read streams. */
export interface WatchedEndpoint extends AsyncDisposable {
  readonly local: LocalEndpoint;
  /** How many connections that have asked for a stream are open. */
  openStreams(): number;
  /** How many have been opened. */
  streamsOpened(): number;
  /** The endpoint as another process reaches it: it shares no stream. */
  endpoint(): Endpoint;
}

/** Starts an embedded endpoint behind a proxy that counts connections. */
export async function startWatchedEndpoint(): Promise<WatchedEndpoint> {
  const { endpoints, close } = await start({ count: 1, engine: "embedded" });
  const local = endpoints[0]!;
  const sockets = new Set<Socket>();
  const streams = new Set<Socket>();
  let opened = 0;
  const proxy = createServer((client) => {
    const server = connect(Number(new URL(local.url).port), "127.0.0.1");
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on("close", () => {
        sockets.delete(from);
        streams.delete(from);
        to.destroy();
      });
      // A reset is a way to close.
      from.on("error", () => undefined);
    }
    client.on("data", (data) => {
      if (!data.includes("POST /subscribe/")) return;
      if (!streams.has(client)) opened += 1;
      streams.add(client);
    });
  });
  await new Promise<void>((resolve) => void proxy.listen(0, "127.0.0.1", resolve));
  const { port } = proxy.address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  return {
    local,
    openStreams: () => streams.size,
    streamsOpened: () => opened,
    endpoint: () => httpEndpoint({ url, token: local.token, name: local.name, dialect: "redis" }),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
      await close();
    },
  };
}
