import { type FaultRule, Faults } from "../faults/faults.ts";
import type { LocalEndpoint } from "../rest/endpoint.ts";
import { accessOf } from "../rest/http/authorize.ts";
import { type Listener, listen } from "../rest/http/listen.ts";
import { refused } from "../rest/http/response.ts";
import type { LocalEndpoints } from "../rest/start.ts";
import { pageCss, pageHtml } from "./html.ts";
import { Watch } from "./watch.ts";

/** Options of {@link openPage}. */
export interface PageOptions {
  /** Port of the page. Default 0: any free port. */
  readonly port?: number;
  /** Reads the script of the page: `tools/build.mjs` makes it from browser/main.ts. */
  readonly script: () => Promise<string>;
}

/** An open page. */
export interface DevPage {
  /** Its address, with the token in the fragment: a browser sends that to nobody. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves the page of local endpoints, on loopback only. What it shows and does needs the endpoints' full token.
 *
 * @example
 * const page = await openPage(local, { script: () => readFile("page.js", "utf8") });
 */
export async function openPage(local: LocalEndpoints, options: PageOptions): Promise<DevPage> {
  const watch = new Watch(local);
  const served = { local, watch, script: options.script };
  async function respond(request: Request): Promise<Response> {
    const response = await answer(request, served);
    for (const [name, value] of Object.entries(safety)) response.headers.set(name, value);
    return response;
  }
  let listener: Listener;
  try {
    listener = await listen(respond, { keepsAlive: true, host: "127.0.0.1", port: options.port ?? 0 });
  } catch (error) {
    watch.close();
    throw error;
  }
  return {
    url: `http://127.0.0.1:${listener.port}/#token=${encodeURIComponent(local.endpoints[0].token)}`,
    async close() {
      watch.close();
      await listener.close();
    },
  };
}

/** What requests to the page are about. */
interface Served {
  readonly local: LocalEndpoints;
  readonly watch: Watch;
  readonly script: PageOptions["script"];
}

async function answer(request: Request, served: Served): Promise<Response> {
  const { local, watch } = served;
  const { token } = local.endpoints[0];
  const { pathname } = new URL(request.url);
  if (!isOfThisMachine(request)) {
    return refused(403, "ERR the page is for this machine only: open it at 127.0.0.1 or localhost");
  }
  const file = request.method === "GET" && Object.hasOwn(files, pathname) ? files[pathname] : undefined;
  if (file) {
    const [type, textOf] = file;
    return new Response(await textOf(served), { headers: { "content-type": `${type}; charset=utf-8` } });
  }
  if (accessOf(request, { token }) !== "full") return refused(401, "WRONGPASS invalid or missing auth token");
  if (pathname === "/api/state") return Response.json(watch.state());
  const [, number, action = ""] = /^\/api\/endpoints\/(\d+)\/([\w-]+)$/.exec(pathname) ?? [];
  const endpoint = local.endpoints[Number(number) - 1];
  const act = request.method === "POST" && Object.hasOwn(actions, action) ? actions[action] : undefined;
  if (!endpoint || !act) return refused(404, "ERR no such path");
  try {
    await act(endpoint, request);
    return Response.json({ result: endpoint.running });
  } catch (error) {
    return refused(400, `ERR ${(error as Error).message}`);
  }
}

/** The files of the page. The map of the script stays on the disk. */
const files: Readonly<
  Record<string, readonly [type: string, text: (served: Served) => string | Promise<string>]>
> = {
  "/": ["text/html", () => pageHtml],
  "/page.css": ["text/css", () => pageCss],
  "/page.js": [
    "text/javascript",
    async ({ script }) => (await script()).replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"),
  ],
};

const actions: Readonly<Record<string, (endpoint: LocalEndpoint, request: Request) => Promise<void>>> = {
  /** Replaces all rules by a JSON array of them. */
  async faults({ faults }, request) {
    const rules = (await request.json()) as FaultRule[];
    // Throws before anything is changed.
    new Faults(rules);
    faults.clear();
    for (const rule of rules) faults.add(rule);
  },
  stop: (endpoint) => endpoint.stop(),
  start: (endpoint) => endpoint.start(),
  "start-empty": (endpoint) => endpoint.start({ memory: "lost" }),
};

/**
 * Whether somebody on this machine asks. A page of another site can resolve its own name to 127.0.0.1, and then reads what
 * it gets as if it were its own: such a request names that site as its host.
 */
function isOfThisMachine({ headers }: Request): boolean {
  // `127.evil.example` is a name, and no address.
  return /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)(?::\d+)?$/i.test(headers.get("host") ?? "");
}

/** No other page may show this one or read from it, and it loads nothing from elsewhere. */
const safety = {
  "cache-control": "no-store",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};
