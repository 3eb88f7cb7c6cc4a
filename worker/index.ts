import { Hono } from "hono";
import { database } from "./bindings.ts";
import { checkHealth } from "./health.ts";
import { readDeliveries, readPageData } from "./journal.ts";
import { page } from "./page.ts";
import { problemOf, problemResponse } from "./problem.ts";
import { type Sender, senders, sendersOf } from "./senders.ts";
import { receive, type WorkerEnv } from "./webhook.ts";

const app = new Hono<WorkerEnv>();

// Sent as headers, because frame-ancestors has no effect in a meta tag. The page loads nothing but its inline style.
const securityHeaders = {
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
} as const;

app.use(async function secure(context, next) {
  await next();
  for (const [name, value] of Object.entries(securityHeaders)) context.header(name, value);
});

for (const sender of Object.values<Sender>(senders)) app.post(sender.path, ...receive(sender));

app.get("/deliveries", async function listDeliveries(context) {
  const limit = context.req.query("limit") ?? "50";
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 500) {
    return problemResponse({ status: 400, title: "Bad limit", detail: "limit is an integer from 1 to 500" });
  }
  return context.json(await readDeliveries(database(context.env), Number(limit)));
});

app.get("/", async function showPage(context) {
  const urls = Object.fromEntries(
    sendersOf(context.env).map(([key, { path }]) => [key, new URL(path, context.req.url).href]),
  );
  return context.html(page({ urls, ...(await readPageData(database(context.env))) }));
});

app.get("/healthz", async function answerHealth({ env, json }) {
  const health = await checkHealth(env);
  return json(health, health.status === "ok" ? 200 : 503);
});

app.notFound(({ req }) =>
  problemResponse({ status: 404, title: "Not found", detail: `there is no ${req.method} ${req.path}` }),
);

app.onError(function answerError(error) {
  const problem = problemOf(error);
  // The cause goes into the log, not to anyone who can send a request.
  if (problem.status === 500) console.error(error);
  return problemResponse(problem);
});

export default app;
