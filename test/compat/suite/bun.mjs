// What the tests of @upstash/redis use of Bun: a server, and a pause.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export { sleep };

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
