import type { LocalEndpoint } from "../rest/endpoint.ts";
import { accessOf } from "../rest/http/authorize.ts";
import { answerFaults, isLoopback } from "../rest/http/faults-api.ts";
import { type Listener, listen, type Peer } from "../rest/http/listen.ts";
import type { LocalEndpoints } from "../rest/start.ts";
import { pageCss, pageHtml } from "./html.ts";
import { messageStream } from "./stream.ts";
import { Watch } from "./watch.ts";

/** Options of {@link openPage}. */
export interface PageOptions {
  /** Port of the page. Default 0: any free port. */
  readonly port?: number;
  /** ms between two looks at the endpoints, and between two messages to a page at least. Default 250. */
  readonly interval?: number;
  /** Reads the script of the page: `tools/build.mjs` makes it from browser/main.ts. */
  readonly script: () => Promise<string>;
}

/** An open page. */
export interface DevPage {
  /** Its address, with the token in the fragment: a browser sends that to nobody. */
  readonly url: string;
  close(): Promise<void>;
}

/** Pages at once: each reads the state four times a second. */
const mostPages = 10;

/**
 * Serves the page of local endpoints, on loopback only. What it shows and does needs the endpoints' full token.
 *
 * @example
 * const page = await openPage(local, { script: () => readFile("page.js", "utf8") });
 */
export async function openPage(local: LocalEndpoints, options: PageOptions): Promise<DevPage> {
  const watch = new Watch(local, options.interval ?? 250);
  const server = new PageServer(local, watch, options.script);
  let listener: Listener;
  try {
    listener = await listen((request, peer) => server.answer(request, peer), {
      host: "127.0.0.1",
      port: options.port ?? 0,
      keepBody: 100_000,
    });
  } catch (error) {
    watch.close();
    throw error;
  }
  return {
    url: `http://127.0.0.1:${listener.port}/#token=${encodeURIComponent(local.endpoints[0]!.token)}`,
    async close() {
      watch.close();
      await listener.close();
    },
  };
}

class PageServer {
  readonly #local: LocalEndpoints;
  readonly #watch: Watch;
  readonly #script: () => Promise<string>;
  #pages = 0;

  constructor(local: LocalEndpoints, watch: Watch, script: () => Promise<string>) {
    this.#local = local;
    this.#watch = watch;
    this.#script = script;
  }

  async answer(request: Request, { address }: Peer): Promise<Response> {
    const refusal = refusalOf(request, address);
    const response = refusal ?? (await this.#route(request, address));
    for (const [name, value] of Object.entries(securityHeaders)) response.headers.set(name, value);
    return response;
  }

  async #route(request: Request, remoteAddress: string): Promise<Response> {
    const { pathname } = new URL(request.url);
    const own = pathname.startsWith("/api/") ? undefined : await this.#file(request.method, pathname);
    if (own) return own;
    const { token } = this.#local.endpoints[0]!;
    if (accessOf(request, { token }) !== "full") {
      return failure(401, "WRONGPASS invalid or missing auth token");
    }
    const [, , first = "", index = "", action = ""] = pathname.split("/");
    const endpoint = first === "endpoints" ? this.#local.endpoints[Number(index) - 1] : undefined;
    if (endpoint && action === "faults") {
      const answer = await answerFaults(request, { faults: endpoint.faults, token, remoteAddress });
      this.#watch.tick();
      return answer;
    }
    if (endpoint && request.method === "POST") return this.#act(endpoint, action);
    if (request.method === "GET" && pathname === "/api/state") return Response.json(this.#watch.state());
    if (request.method === "GET" && pathname === "/api/live") return this.#live();
    return failure(404, "ERR no such path");
  }

  async #file(method: string, pathname: string): Promise<Response | undefined> {
    const file = (type: string, text: string) =>
      new Response(text, { headers: { "content-type": `${type}; charset=utf-8` } });
    if (method !== "GET" && method !== "HEAD") return undefined;
    if (pathname === "/") return file("text/html", pageHtml);
    if (pathname === "/page.css") return file("text/css", pageCss);
    if (pathname !== "/page.js") return undefined;
    return file("text/javascript", withoutMap(await this.#script()));
  }

  async #act(endpoint: LocalEndpoint, action: string): Promise<Response> {
    try {
      if (action === "stop") await endpoint.stop();
      else if (action === "start") await endpoint.start();
      else if (action === "start-empty") await endpoint.start({ memory: "lost" });
      else return failure(404, "ERR no such path");
    } catch (error) {
      return failure(409, `ERR ${(error as Error).message}`);
    }
    this.#watch.tick();
    return Response.json({ result: endpoint.running });
  }

  #live(): Response {
    if (this.#pages >= mostPages) return failure(503, `ERR ${mostPages} pages are open already`);
    this.#pages += 1;
    const view = this.#watch.view();
    const body = messageStream(
      () => view.next(),
      () => {
        view.close();
        this.#pages -= 1;
      },
    );
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

/**
 * Refuses everybody but this machine. A page of another site can resolve its own name to 127.0.0.1, and then reads what
 * it gets as if it were its own: such a request names that site as its host.
 */
function refusalOf(request: Request, address: string): Response | undefined {
  const host = request.headers.get("host") ?? "";
  const name = host.replace(/:\d+$/, "");
  const reached = new URL(request.url).hostname;
  if (isLoopback(address) && isLocalName(name) && isLocalName(reached)) return undefined;
  return failure(403, "ERR the page is for this machine only: open it at 127.0.0.1 or localhost");
}

/** Stricter than isLoopback: `127.evil.example` is a name, and no address. */
const isLocalName = (name: string): boolean => /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)$/i.test(name);

const failure = (status: number, error: string): Response => Response.json({ error }, { status });

/** The map stays on the disk. */
const withoutMap = (script: string): string => script.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");

const securityHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};
