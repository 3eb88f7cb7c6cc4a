import type { Command, Dialect, Endpoint } from "../../../src/endpoints/endpoint.ts";
import { httpEndpoint } from "../../../src/index.ts";
import type { Client } from "./client.ts";
import type { Answer } from "./store.ts";
import type { Flaw, Server, World } from "./world.ts";

// A link through the library's own HTTP endpoint, whose `fetch` answers from the world.

type Respond = (init: RequestInit) => Promise<Response>;

/** By address: who answers there. Only one world is played at a time. */
const addresses = new Map<string, Respond>();

/** From now on, worlds answer every `fetch` of this process. */
export function interceptFetch(): void {
  globalThis.fetch = (address, init) => {
    const respond = addresses.get(String(address));
    if (!respond || !init) throw new Error(`the library fetched an unknown address: ${String(address)}`);
    return respond(init);
  };
}

/** The HTTP endpoint through which a client reaches a server. */
export function createHttpLink(
  world: World,
  client: Client,
  { server, dialect }: { readonly server: Server; readonly dialect: Dialect },
): Endpoint {
  const url = `https://${client.name}.${server.name}.example/`;
  addresses.set(url, (init) => respond(world, client, server, init));
  return httpEndpoint({ url, token: "token", name: server.name, dialect });
}

function respond(world: World, client: Client, server: Server, init: RequestInit): Promise<Response> {
  const command = JSON.parse(String(init.body)) as Command;
  const { signal } = init;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abandon = () => {
      message.isOpen = false;
      reject(signal?.reason);
    };
    const message = world.send(client, server, command, (answer, flaw) => {
      signal?.removeEventListener("abort", abandon);
      if ("refused" in answer && answer.refused === "away") reject(new TypeError("fetch failed"));
      else resolve(responseOf(answer, flaw));
    });
    signal?.addEventListener("abort", abandon);
  });
}

/** Not a real Response: reading its body would take turns of the event loop. */
function responseOf(answer: Answer, flaw: Flaw | undefined): Response {
  const said = "reply" in answer ? { result: answer.reply } : { error: answer.refused };
  const text = JSON.stringify(flaw === "error" ? { ...said, error: "ERR it failed" } : said);
  const usual = "reply" in answer ? 200 : 400;
  const parts = {
    status: flaw === "status" ? 502 : usual,
    headers: new Headers({ "content-length": String(text.length) }),
    body: null,
    text: () => Promise.resolve(text),
  };
  return parts as unknown as Response;
}
