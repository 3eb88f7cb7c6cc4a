import { execFile } from "node:child_process";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

// In a process of its own, because the defect appears at its exit. The request and the byte that closes the listener
// arrive together, so that the request is answered while its connection is being ended.
const program = `
import net from "node:net";
import { once } from "node:events";
import { load } from ${JSON.stringify(pathToFileURL("tools/load.mjs").href)};
const { listen } = await load("local/src/rest/http/listen.ts");
const listener = await listen(
  async () => (closed ? "reset" : new Response("too early")),
  { host: "127.0.0.1", port: 0 },
);
let closed;
const control = net.createServer((socket) => socket.once("data", () => { closed = listener.close(); }));
await once(control.listen(0, "127.0.0.1"), "listening");
const connect = async (port) => {
  const socket = net.connect(port, "127.0.0.1").on("error", () => undefined);
  await once(socket, "connect");
  return socket;
};
const trigger = await connect(control.address().port);
const clients = [];
for (let count = 0; count < 10; count++) clients.push(await connect(listener.port));
// After an answered request, the listener knows that the connection is idle.
for (const client of clients) {
  client.write("GET / HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n");
  await once(client, "data");
}
trigger.write("x");
for (const client of clients) client.write("GET / HTTP/1.1\\r\\nhost: localhost\\r\\n\\r\\n");
await Promise.all(clients.map((client) => client.destroyed || once(client, "close")));
await closed;
trigger.destroy();
control.close();
console.log("closed");
`;

it("listen lets its process exit after requests that arrived while it closed", async () => {
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", program], { timeout: 20_000 });
  expect(stdout).toBe("closed\n");
});
