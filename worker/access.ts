import type { Context, MiddlewareHandler, Next } from "hono";
import { bodyLimit } from "hono/body-limit";
import { deleteCookie, getSignedCookie, setSignedCookie } from "hono/cookie";
import { constantTimeEqual, sha256 } from "../src/webhooks/custom/index.ts";
import { type Bindings, secretHint } from "./bindings.ts";
import { signInPage } from "./page/sign-in.ts";
import { problemResponse } from "./problem.ts";
import type { Reader, WorkerEnv } from "./webhook.ts";

// Attempts are not counted: with that, those who guess could lock the operator out. A random secret of this length
// cannot be guessed, and an attempt costs two hashes of a small body: no row, no request to Redis, no line in the log.
const minSecretLength = 32;
// Fewer are not a random secret, such as 40 spaces.
const minDifferentCharacters = 8;
// How the secret of .dev.vars.example begins, which everybody can read.
const placeholder = "change-me";
const maxFormLength = 1_024;

// ms. Then one has to sign in again.
const sessionLength = 12 * 60 * 60 * 1_000;

const cookieName = "journal";
// Only this host can set a cookie with this prefix, and gets it back.
const cookie = { prefix: "host", httpOnly: true, secure: true, sameSite: "Strict" } as const;

/**
 * Who asks; undefined for a stranger.
 *
 * @param openOnLoopback whether what asks a loopback address needs no secret
 *
 * @example
 * c.set("reader", await readerOf(c, false));
 */
export async function readerOf(c: Context<WorkerEnv>, openOnLoopback: boolean): Promise<Reader | undefined> {
  // By the name that was asked for: a site whose name leads to this address (DNS rebinding) remains a stranger.
  const { hostname } = new URL(c.req.url);
  if (openOnLoopback && /^(localhost|127\.0\.0\.1|\[::1\])$/.test(hostname)) return "local";
  const secret = secretOf(c.env);
  if (secret === undefined) return undefined;
  const [, given] = /^Bearer (.+)$/i.exec(c.req.header("authorization") ?? "") ?? [];
  if (given !== undefined && (await isSame(given, secret))) return "program";
  const until = await getSignedCookie(c, secret, cookieName, cookie.prefix);
  return Number(until) > Date.now() ? "session" : undefined;
}

/** Middleware: what is registered after it answers nobody else than a {@link Reader}. */
export async function requireReader(c: Context<WorkerEnv>, next: Next): Promise<Response | undefined> {
  if (c.var.reader === undefined) return refuseStranger(c);
  await next();
  return undefined;
}

/**
 * Middleware for forms: refuses those of other sites. Every browser says where a form comes from, over HTTPS and on
 * loopback. The origin would not do: under the page's referrer policy it is null.
 */
export const requireOwnPage: MiddlewareHandler = async function requireOwnPage({ req }, next) {
  if (req.header("sec-fetch-site") === "same-origin") return next();
  return problemResponse({
    status: 403,
    title: "Not from this page",
    detail: "only its own forms are answered",
  });
};

/** Middleware: refuses a larger body than the sign-in form has, without reading it. */
export const requireSmallForm: MiddlewareHandler = bodyLimit({
  maxSize: maxFormLength,
  onError: () => problemResponse({ status: 413, title: "Too large", detail: "a sign-in form is smaller" }),
});

/** Answers the sign-in form with a cookie that says until when it is valid, is signed, and does not contain the secret. */
export async function signIn(c: Context<WorkerEnv>): Promise<Response> {
  const secret = secretOf(c.env);
  const given = new URLSearchParams(await c.req.text()).get("secret");
  if (secret === undefined || given === null || !(await isSame(given, secret))) {
    return refuseStranger(c, "That is not the secret.");
  }
  const until = String(Date.now() + sessionLength);
  await setSignedCookie(c, cookieName, until, secret, { ...cookie, maxAge: sessionLength / 1_000 });
  return c.redirect("/", 303);
}

/** Deletes the cookie of this browser. A copy of it would stay valid until its time, or until the secret is replaced. */
export function signOut(c: Context<WorkerEnv>): Response {
  deleteCookie(c, cookieName, cookie);
  return c.redirect("/", 303);
}

/** People get a page with the form; programs get a problem. Without a secret, both say how to set one. */
async function refuseStranger(c: Context<WorkerEnv>, refusal?: string): Promise<Response> {
  const closed = secretOf(c.env) === undefined ? closedHint : undefined;
  const status = closed ? 403 : 401;
  const headers = closed ? undefined : { "www-authenticate": "Bearer" };
  const isPage = c.req.path === "/" || c.req.path === "/sign-in";
  if (isPage) return c.html(signInPage({ closed, refusal }), status, headers);
  const title = closed ? "Closed" : "Not signed in";
  const detail = closed ?? "sign in at /, or send JOURNAL_SECRET as `authorization: Bearer …`";
  return problemResponse({ status, title, detail }, headers);
}

const closedHint = `JOURNAL_SECRET is missing, shorter than ${minSecretLength} characters, or easy to guess. ${secretHint("JOURNAL_SECRET")} \`openssl rand -base64 32\` prints a good one.`;

function secretOf({ JOURNAL_SECRET: secret = "" }: Bindings): string | undefined {
  if (secret.length < minSecretLength || new Set(secret).size < minDifferentCharacters) return undefined;
  return secret.startsWith(placeholder) ? undefined : secret;
}

/** Compares hashes, in constant time: not even the secret's length shows. */
async function isSame(given: string, secret: string): Promise<boolean> {
  const [one, other] = await Promise.all(
    [given, secret].map((text) => sha256(new TextEncoder().encode(text))),
  );
  return constantTimeEqual(one!, other!);
}
