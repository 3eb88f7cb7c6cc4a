import { createServer, type Socket } from "node:net";
import type { Distortion } from "./garbage.ts";

/** An answer with any headers, right or wrong. */
export type OddAnswer = Pick<Distortion, "kind" | "headers" | "at"> & {
  readonly status: number;
  readonly body: string;
};

/** A server that writes raw HTTP, so that headers may contradict bodies. One request per connection. */
export async function startOddServer(
  answer: (command: (string | number)[]) => OddAnswer,
): Promise<{ url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    // A client that gives up breaks the connection, as it should.
    socket.on("error", () => socket.destroy());
    let text = "";
    socket.on("data", (piece) => {
      text += piece.toString();
      const [head = "", body = ""] = text.split("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      if (Buffer.byteLength(body) === length) write(socket, answer(JSON.parse(body)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function write(socket: Socket, { kind, status, body, headers = {}, at = 0 }: OddAnswer): void {
  if (kind === "hang") return;
  if (kind === "fail") {
    socket.resetAndDestroy();
    return;
  }
  const bytes = Buffer.from(body);
  const place = Math.floor(at * bytes.length);
  if (kind === "flip" && bytes.length > 0) bytes[place] = 0xff;
  const sent = kind === "cut" || kind === "break" ? bytes.subarray(0, place) : bytes;
  // A cut body has the right content-length, so HTTP takes it for complete; a broken one has not.
  const sized = {
    "content-length": String(kind === "cut" ? sent.length : bytes.length),
    connection: "close",
  };
  const length = kind === "endless" || kind === "stall" ? { connection: "close" } : sized;
  const lines = Object.entries({ ...length, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(Buffer.from(`HTTP/1.1 ${status} x\r\n${lines.join("")}\r\n`, "latin1"));
  socket.write(sent);
  if (kind === "break") socket.resetAndDestroy();
  else if (kind === "endless") flood(socket);
  else if (kind !== "stall") socket.end();
}

/** Writes as long as the other side reads. */
function flood(socket: Socket): void {
  const piece = Buffer.alloc(1 << 20, 0x20);
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on("drain", more);
  more();
}
