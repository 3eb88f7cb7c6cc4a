import { Hono } from "hono";
import { secureHeaders } from "hono/secure-headers";
import { streamSSE } from "hono/streaming";
import type { LocalEndpoint } from "../rest/endpoint.ts";
import { accessOf } from "../rest/http/authorize.ts";
import { answerFaults, isLoopback } from "../rest/http/faults-api.ts";
import { type Listener, listen } from "../rest/http/listen.ts";
import type { LocalEndpoints } from "../rest/start.ts";
import { pageCss, pageHtml } from "./html.ts";
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

/**
 * Serves the page of local endpoints, on loopback only. What it shows and does needs the endpoints' full token.
 *
 * @example
 * const page = await openPage(local, { script: () => readFile("page.js", "utf8") });
 */
export async function openPage(local: LocalEndpoints, options: PageOptions): Promise<DevPage> {
  const watch = new Watch(local, options.interval ?? 250);
  const app = pageApp(local, watch, options.script);
  let listener: Listener;
  try {
    listener = await listen(async (request, { address }) => app.fetch(request, { address }), {
      keepsAlive: true,
      host: "127.0.0.1",
      port: options.port ?? 0,
      maxBody: 100_000,
    });
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

function pageApp(local: LocalEndpoints, watch: Watch, script: PageOptions["script"]) {
  const { token } = local.endpoints[0];
  const app = new Hono<{ Bindings: { address: string } }>();
  app.use(secureHeaders({ contentSecurityPolicy, xFrameOptions: "DENY" }));
  app.use(async function onlyThisMachine(context, next) {
    context.header("cache-control", "no-store");
    if (isOfThisMachine(context.req.raw, context.env.address)) return next();
    return context.json(
      { error: "ERR the page is for this machine only: open it at 127.0.0.1 or localhost" },
      403,
    );
  });
  app.get("/", ({ html }) => html(pageHtml));
  app.get("/page.css", ({ body }) => body(pageCss, 200, { "content-type": "text/css; charset=utf-8" }));
  app.get("/page.js", async ({ body }) =>
    body(withoutMap(await script()), 200, { "content-type": "text/javascript; charset=utf-8" }),
  );
  app.use(async function onlyWithToken(context, next) {
    if (accessOf(context.req.raw, { token }) === "full") return next();
    return context.json({ error: "WRONGPASS invalid or missing auth token" }, 401);
  });
  app.get("/api/state", ({ json }) => json(watch.state()));
  app.get("/api/live", (context) =>
    streamSSE(context, async (stream) => {
      // The next message is made when this one has been read: a page that does not read costs one.
      for (let seen = -1; !stream.aborted; ) {
        const next = await watch.next(seen);
        if (!next) break;
        seen = next.look;
        await stream.writeSSE({ data: JSON.stringify(next.state) });
      }
    }),
  );
  app.all("/api/endpoints/:number/faults", async ({ req, env }) => {
    const endpoint = local.endpoints[Number(req.param("number")) - 1];
    if (!endpoint) return new Response("{}", { status: 404 });
    const { faults } = endpoint;
    const answer = await answerFaults(req.raw, { faults, token, remoteAddress: env.address });
    watch.tick();
    return answer;
  });
  app.post("/api/endpoints/:number/:action", async (context) => {
    const { number, action } = context.req.param();
    const endpoint = local.endpoints[Number(number) - 1];
    const act = endpoint && actions[action];
    if (!act) return context.notFound();
    try {
      await act(endpoint);
    } catch (error) {
      return context.json({ error: `ERR ${(error as Error).message}` }, 409);
    }
    watch.tick();
    return context.json({ result: endpoint.running });
  });
  app.notFound(({ json }) => json({ error: "ERR no such path" }, 404));
  return app;
}

const actions: Readonly<Record<string, (endpoint: LocalEndpoint) => Promise<void>>> = {
  stop: (endpoint) => endpoint.stop(),
  start: (endpoint) => endpoint.start(),
  "start-empty": (endpoint) => endpoint.start({ memory: "lost" }),
};

/**
 * Whether somebody on this machine asks. A page of another site can resolve its own name to 127.0.0.1, and then reads what
 * it gets as if it were its own: such a request names that site as its host.
 */
function isOfThisMachine({ headers, url }: Request, address: string): boolean {
  const names = [headers.get("host")?.replace(/:\d+$/, "") ?? "", new URL(url).hostname];
  // Stricter than isLoopback: `127.evil.example` is a name, and no address.
  const isLocal = (name: string) => /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)$/i.test(name);
  return isLoopback(address) && names.every(isLocal);
}

/** The map stays on the disk. */
const withoutMap = (script: string): string => script.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");

const contentSecurityPolicy = {
  defaultSrc: ["'none'"],
  scriptSrc: ["'self'"],
  styleSrc: ["'self'"],
  connectSrc: ["'self'"],
  imgSrc: ["data:"],
  baseUri: ["'none'"],
  formAction: ["'none'"],
  frameAncestors: ["'none'"],
};
