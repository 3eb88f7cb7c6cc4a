import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { engines } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";
import { oneEndpoint } from "./one-endpoint.ts";

// Requests that no HTTP client sends, written byte by byte.
describe.each(engines)("raw HTTP on %s", (engine) => {
  const one = oneEndpoint({ engine, token: "full" });

  /** Writes a request and collects the response. */
  async function open(...lines: string[]) {
    const socket = connect(Number(new URL(one.endpoint.url).port), "127.0.0.1");
    let received = "";
    let closed = false;
    socket.on("data", (bytes) => {
      received += bytes.toString("latin1");
    });
    // The endpoint may break the connection; `status` reports that as "closed".
    socket.on("error", () => undefined);
    socket.on("close", () => {
      closed = true;
    });
    await once(socket, "connect");
    socket.write(Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"));
    return {
      socket,
      /** The first status, or "closed". */
      status: () =>
        until<string | undefined>(
          () =>
            received.includes("\r\n\r\n")
              ? /^HTTP\/1\.1 (\d{3})/.exec(received)?.[1]
              : closed
                ? "closed"
                : undefined,
          "an answer",
        ),
      received: () => received,
    };
  }

  async function statusOf(...lines: string[]): Promise<string> {
    const { socket, status } = await open(...lines);
    const answer = await status();
    socket.destroy();
    return answer;
  }

  test.each([
    ["GET // HTTP/1.1", "401"],
    ["GET //ping?_token=full HTTP/1.1", "400"],
    ["TRACE / HTTP/1.1", "400"],
    ["GET http://elsewhere/ping?_token=full HTTP/1.1", "200"],
    ["GET ftp://elsewhere/ping?_token=full HTTP/1.1", "400"],
    ["OPTIONS * HTTP/1.1", "405"],
    ["CONNECT localhost:80 HTTP/1.1", "closed"],
    ["GET /get/%zz?_token=full HTTP/1.1", "400"],
    ["GET /?_token=full&%=%zz HTTP/1.1", "400"],
  ])("%s is answered with %s", async (line, status) => {
    expect(await statusOf(line, "Host: localhost")).toBe(status);
    expect(await statusOf("GET /ping?_token=full HTTP/1.1", "Host: localhost")).toBe("200");
  });

  test("Expect: 100-continue is answered with 100", async () => {
    const head = ["POST / HTTP/1.1", "Host: localhost", "Authorization: Bearer full"];
    const { socket, status, received } = await open(...head, "Content-Length: 8", "Expect: 100-continue");
    expect(await status()).toBe("100");
    socket.write('["PING"]');
    await until(() => received().includes('{"result":"PONG"}'), "the reply");
    socket.destroy();
  });
});
