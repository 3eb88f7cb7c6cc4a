import { type Context, Hono, type Next } from "hono";
import { basicAuth } from "hono/basic-auth";
import { secureHeaders } from "hono/secure-headers";
import { checkHealth } from "../health.ts";
import type { WorkerEnv } from "../webhook.ts";
import { readEvents } from "./journal.ts";
import css from "./page.css";
import { page } from "./page.ts";

// Attempts are not counted: with that, those who guess could lock the operator out. A random secret of this length cannot
// be guessed.
const minSecretLength = 32;

/** The page that shows the journal, and its style sheet, for those who know the secret. */
export const journalPage = new Hono<WorkerEnv>();

journalPage.use(
  secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: ["'none'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
      styleSrc: ["'self'"],
      // The icon is empty, so that browsers do not request one.
      imgSrc: ["data:"],
    },
  }),
  requireReader,
);

journalPage.get("/", async function showPage({ env, html, header }) {
  const [health, events] = await Promise.all([checkHealth(env), readEvents(env.DB).catch(noRows)]);
  header("cache-control", "no-store");
  return html(page({ health, events, now: Date.now() }));
});

journalPage.get("/page.css", ({ body }) => body(css, 200, { "content-type": "text/css; charset=utf-8" }));

/** Middleware: the browser asks for name and password. Without a secret, nobody sees the page. */
async function requireReader(c: Context<WorkerEnv>, next: Next): Promise<Response | undefined> {
  const { JOURNAL_SECRET: password = "" } = c.env;
  if (password.length < minSecretLength) {
    return c.text(`The page is closed: set JOURNAL_SECRET, ${minSecretLength} characters or more.\n`, 403);
  }
  await basicAuth({ username: "journal", password })(c, next);
  return undefined;
}

/** The health says what is wrong with the database. */
function noRows(error: unknown): readonly [] {
  console.error(error);
  return [];
}
