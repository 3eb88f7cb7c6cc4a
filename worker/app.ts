import { type Context, Hono } from "hono";
import { readerOf, requireOwnPage, requireReader, requireSmallForm, signIn, signOut } from "./access.ts";
import { BindingError, type Bindings, database } from "./bindings.ts";
import { checkHealth } from "./health.ts";
import type { Health } from "./health-report.ts";
import { readDeliveries, readNewestId, readPageData } from "./journal.ts";
import type { Markup } from "./page/html.ts";
import script from "./page/live.client.js";
import css from "./page/page.css";
import { page } from "./page/page.ts";
import { problemOf, problemResponse, withoutSetUp } from "./problem.ts";
import type { DeliveryRow } from "./rows.ts";
import { type Sender, senders, sendersOf } from "./senders.ts";
import { receive, type WorkerEnv } from "./webhook.ts";

/** What the Worker of `npm run dev` has and the deployed one does not have. */
export interface AppOptions {
  /** Makes the page's buttons, which are forms that post to the Worker itself. Default: the page has none. */
  readonly tryIt?: (deliveries: readonly DeliveryRow[]) => Markup;
  /** Whether who asks a loopback address sees the journal without a secret. Default false. */
  readonly openOnLoopback?: boolean;
}

// ms. The page does not wait longer for endpoints that do not answer; the next request finds the result.
const healthWait = 300;

/**
 * The Worker: webhooks under `/webhooks`, and whether it is healthy, for everybody; the page, the journal, and the
 * details of the health for those who are signed in.
 *
 * @example
 * export default createApp();
 */
export function createApp({ tryIt, openOnLoopback = false }: AppOptions = {}): Hono<WorkerEnv> {
  const app = new Hono<WorkerEnv>();

  app.use(async function secure(context, next) {
    context.set("reader", await readerOf(context, openOnLoopback));
    await next();
    for (const [name, value] of Object.entries(securityHeaders)) context.header(name, value);
  });

  for (const sender of Object.values<Sender>(senders)) app.post(sender.path, ...receive(sender));
  app.get("/page.css", ({ body }) => body(css, 200, { "content-type": "text/css; charset=utf-8" }));
  app.get("/live.js", ({ body }) => body(script, 200, { "content-type": "text/javascript; charset=utf-8" }));
  app.get("/healthz", answerHealth);
  app.post("/sign-in", requireOwnPage, requireSmallForm, signIn);

  // What is registered after this, here or on the app that is returned, is not for strangers.
  app.use(requireReader);
  app.post("/sign-out", requireOwnPage, signOut);

  app.get("/deliveries", async function listDeliveries(context) {
    const limit = context.req.query("limit") ?? "50";
    if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 500) {
      return problemResponse({
        status: 400,
        title: "Bad limit",
        detail: "limit is an integer from 1 to 500",
      });
    }
    return context.json(await readDeliveries(database(context.env), Number(limit)));
  });

  app.get("/", (context) => showPage(context, tryIt));

  app.notFound(({ req }) =>
    problemResponse({ status: 404, title: "Not found", detail: `there is no ${req.method} ${req.path}` }),
  );

  app.onError(function answerError(error, { var: { reader } }) {
    const problem = problemOf(error);
    // The cause goes into the log, not to anyone who can send a request.
    if (problem.status === 500 || problem.hint !== undefined) console.error(error);
    return problemResponse(reader === undefined ? withoutSetUp(problem) : problem);
  });
  return app;
}

/** Sent as headers, because frame-ancestors has no effect in a meta tag. The page loads only its own two files. */
const securityHeaders = {
  "content-security-policy": [
    ...["default-src", "base-uri", "frame-ancestors"].map((directive) => `${directive} 'none'`),
    ...["style-src", "script-src", "connect-src", "form-action"].map((directive) => `${directive} 'self'`),
    // The icon is empty, so that browsers do not request one.
    "img-src data:",
  ].join("; "),
  // The page's script asks with the version that it shows, and a reload always gets the newest page.
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
};

/** The health; a stranger learns only whether the Worker can handle deliveries. */
async function answerHealth(c: Context<WorkerEnv>): Promise<Response> {
  const known = c.var.reader !== undefined;
  const health = await checkHealth(c.env).catch((error: unknown) => {
    if (known) throw error;
    console.error(error);
    return { status: "unavailable" } as const;
  });
  const { status } = health;
  return c.json(known ? health : { status }, status === "ok" ? 200 : 503);
}

/**
 * The page, or 304 if the client has seen this version. A page that polls costs one row of D1 as long as nothing
 * happens.
 */
async function showPage(c: Context<WorkerEnv>, tryIt: AppOptions["tryIt"]): Promise<Response> {
  const db = database(c.env);
  const [health, newest] = await Promise.all([healthOf(c), readNewestId(db)]);
  // Read before the rows: what is written meanwhile is shown, and once more under the next version.
  const version = `"${newest}.${healthVersion(health)}"`;
  const headers = { etag: version };
  // A proxy that compresses the page makes the tag a weak one.
  if (c.req.header("if-none-match")?.replace(/^W\//, "") === version) return c.body(null, 304, headers);
  const urls = Object.fromEntries(
    sendersOf(c.env).map(([key, { path }]) => [key, new URL(path, c.req.url).href]),
  );
  const data = await readPageData(db);
  const parts = { tryIt: tryIt?.(data.deliveries), canSignOut: c.var.reader === "session" };
  return c.html(page({ ...data, ...parts, urls, health, version }), 200, headers);
}

/** The health; a text that says what is not set up; or undefined if the endpoints take long. */
async function healthOf(c: Context<WorkerEnv>): Promise<Health | string | undefined> {
  const check = healthOrHint(c.env);
  // It goes on after the answer, for the next request.
  c.executionCtx.waitUntil(check);
  return Promise.race([
    check,
    new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), healthWait)),
  ]);
}

function healthOrHint(env: Bindings): Promise<Health | string> {
  return checkHealth(env).catch((error: unknown) => {
    if (error instanceof BindingError) return error.message;
    console.error(error);
    return "the check failed, and the Worker's log has the cause";
  });
}

/** Differs whenever the page shows another health; without characters that an ETag must not contain. */
function healthVersion(health: Health | string | undefined): string {
  if (typeof health !== "object") return health === undefined ? "asked" : "not-set-up";
  return [...health.endpoints, health.database]
    .map(({ failure }) => (failure ? Object.values(failure).join("-") : "ok"))
    .join(".");
}
