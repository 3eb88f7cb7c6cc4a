import { createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import {
  type Endpoint,
  type EndpointError,
  httpEndpoint,
  type QuorumError,
  Redlock,
  upstashEndpoint,
} from "../../../src/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { freePort } from "../../support/free-port.ts";
import { sdkClient } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";

// What is reached is no server of HTTP. The error says what to look at, as far as it can be known. Other answers: replies.test.ts.

const token = "a-secret-token";
const throughSdk = (url: string, enableAutoPipelining: boolean) =>
  upstashEndpoint(sdkClient({ url, token }, { retry: false, enableAutoPipelining }), { name: "odd" });
const ways: Record<string, (url: string) => Endpoint> = {
  "an address": (url) => httpEndpoint({ url, token, name: "odd" }),
  "a client of @upstash/redis": (url) => throughSdk(url, true),
  "a client of @upstash/redis without pipelines": (url) => throughSdk(url, false),
};

/** Acquires at this endpoint alone, and resolves with its error. */
async function errorOf(endpoint: Endpoint): Promise<EndpointError> {
  const redlock = new Redlock({ ...patient, endpoints: [endpoint], wait: 0 });
  const { votes } = (await rejection(redlock.acquire("a"))) as QuorumError;
  const error = votes[0]!.cause!;
  expect(error.message).not.toContain(token);
  return error;
}

/** A server on TCP: what it does with the first bytes of each connection. */
async function listening(onData: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => onData(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { host: `127.0.0.1:${port}`, close: () => new Promise((resolve) => server.close(resolve)) };
}

describe.each(Object.entries(ways))("%s", (_, reach) => {
  test.each<[what: string, scheme: "http" | "https", does: (socket: Socket) => void, said: string | RegExp]>([
    [
      "has no TLS",
      "https",
      (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"),
      "(ERR_SSL_WRONG_VERSION_NUMBER): no TLS there",
    ],
    [
      "closes",
      "http",
      (socket) => socket.end(),
      "(UND_ERR_SOCKET): broken off, or no HTTP (is it a Redis port?)",
    ],
    [
      "breaks off",
      "https",
      (socket) => socket.resetAndDestroy(),
      "(ECONNRESET): broken off, or no HTTP (is it a Redis port?)",
    ],
    [
      "speaks another protocol",
      "http",
      (socket) => socket.end("-ERR unknown command 'POST'\r\n"),
      // The second with undici 7, which other tests of the same process may have loaded.
      /^\((HPE_INVALID_CONSTANT|HTTPParserError)\): broken off, or no HTTP \(is it a Redis port\?\)$/,
    ],
  ])("a port that %s, under %s://", async (_, scheme, does, said) => {
    const server = await listening(does);
    const error = await errorOf(reach(`${scheme}://${server.host}`));
    expect(error).toMatchObject({ kind: "network", permanent: false });
    const reason = error.message.replace("odd: the request failed ", "");
    expect(reason).toEqual(typeof said === "string" ? said : expect.stringMatching(said));
    await server.close();
  });

  test("a port on which nothing listens, and a host that does not exist", async () => {
    const refused = await errorOf(reach(`http://127.0.0.1:${await freePort()}`));
    expect(refused.message).toBe("odd: the request failed (ECONNREFUSED): nothing listens");
    const unknown = await errorOf(reach("https://no-such-host.invalid"));
    expect(unknown.message).toMatch(/failed \((ENOTFOUND|EAI_AGAIN)\): no such host$/);
  });
});
