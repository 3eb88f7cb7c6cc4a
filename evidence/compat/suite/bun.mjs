// What the tests of @upstash/redis use of Bun: a server, and a pause.
import { mkdir, rmdir } from "node:fs/promises";
import { createServer } from "node:http";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll } from "vitest";

export { sleep };

// The files that have a server have it on the same port, and Bun runs files one after the other. So the next file that
// imports this begins when the one before has removed the folder.
const turn = process.env.COMPAT_TURN;
while ((await Promise.allSettled([mkdir(turn)]))[0].status === "rejected") await sleep(50);
afterAll(() => rmdir(turn));

export function serve({ port, fetch: answer }) {
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    const hasBody = request.method !== "GET" && request.method !== "HEAD";
    const { status, headers, body } = await answer(
      new Request(`http://localhost:${port}${request.url}`, {
        method: request.method,
        headers: request.headers,
        ...(hasBody && { body: Buffer.concat(chunks) }),
      }),
    );
    response.writeHead(status, Object.fromEntries(headers));
    for await (const chunk of body ?? []) response.write(chunk);
    response.end();
  }).listen(port);
  return {
    port,
    url: new URL(`http://localhost:${port}`),
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
