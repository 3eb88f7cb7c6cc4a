import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { type Bindings, database, githubOf, redlockOf, standardWebhooksOf } from "./bindings.ts";
import { githubEvent, standardWebhooksEvent } from "./event.ts";
import { readDeliveries, readPageData } from "./journal.ts";
import { page } from "./page.ts";
import { problemOf, problemResponse } from "./problem.ts";
import { receive, type Sender } from "./webhook.ts";

// Far above what the two senders deliver by default, and little for a Worker to hold: 1 MiB.
const maxBody = 1024 * 1024;

const githubSender: Sender = {
  name: "github",
  provider: githubOf,
  event: (request, body) => githubEvent(request, body),
};

const standardWebhooksSender: Sender = {
  name: "standard-webhooks",
  provider: standardWebhooksOf,
  event: (_request, body, id) => standardWebhooksEvent(body, id),
};

const app = new Hono<{ Bindings: Bindings }>();

app.use(
  "/webhooks/*",
  bodyLimit({
    maxSize: maxBody,
    onError: () =>
      problemResponse({ status: 413, title: "Too large", detail: `a body may have ${maxBody} bytes` }),
  }),
);

app.post("/webhooks/github", (context) => receive(context, githubSender));
app.post("/webhooks/standard", (context) => receive(context, standardWebhooksSender));

app.get("/deliveries", async function listDeliveries(context) {
  const limit = context.req.query("limit") ?? "50";
  if (!/^\d{1,3}$/.test(limit) || Number(limit) < 1 || Number(limit) > 500) {
    return problemResponse({ status: 400, title: "Bad limit", detail: "limit is an integer from 1 to 500" });
  }
  return context.json(await readDeliveries(database(context.env), Number(limit)));
});

app.get("/", async function showPage(context) {
  const urls = {
    github: new URL("/webhooks/github", context.req.url).href,
    standardWebhooks: new URL("/webhooks/standard", context.req.url).href,
  };
  return context.html(page({ urls, ...(await readPageData(database(context.env))) }));
});

// Whether it is set up. It asks no Redis: anybody may call it as often as they like, and commands are billed.
app.get("/healthz", async function checkHealth({ env, json }) {
  redlockOf(env);
  githubOf(env);
  standardWebhooksOf(env);
  await database(env).prepare("SELECT 1 FROM effects, entities, deliveries LIMIT 1").run();
  return json({ status: "ok" });
});

app.notFound(({ req }) =>
  problemResponse({ status: 404, title: "Not found", detail: `there is no ${req.method} ${req.path}` }),
);

app.onError(function answerError(error: Error, _context: Context): Response {
  console.error(error);
  return problemResponse(problemOf(error));
});

export default app;
