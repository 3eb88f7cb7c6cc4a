import { Hono } from "hono";
import { checkHealth } from "./health.ts";
import { journalPage } from "./page/app.ts";
import { journal } from "./page/journal.ts";
import { answerError } from "./problem.ts";
import { senders } from "./senders.ts";
import { receive, type WorkerEnv } from "./webhook.ts";

const app = new Hono<WorkerEnv>();

for (const sender of senders) {
  app.post(`/webhooks/${sender.name}`, journal(sender), ...receive(sender));
}

// For everybody, so without details; the page has them.
app.get("/healthz", async function answerHealth({ env, json }) {
  const { ok } = await checkHealth(env);
  return json({ status: ok ? "ok" : "unavailable" }, ok ? 200 : 503, { "cache-control": "no-store" });
});

app.route("/", journalPage);
app.onError(answerError);

export default app;
