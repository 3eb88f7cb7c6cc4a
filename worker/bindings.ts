import { type LockOptions, Redlock } from "../src/index.ts";
import { github, standardWebhooks, type WebhookProvider } from "../src/webhooks/index.ts";

/**
 * What the Worker is given: see wrangler.toml and `.dev.vars.example`. Each may be missing, because nothing
 * checks a deployment's configuration before the first request does.
 */
export interface Bindings {
  /** The D1 database with the tables of schema.sql. */
  readonly DB?: D1Database;
  /** The secret typed into GitHub's webhook settings. */
  readonly GITHUB_WEBHOOK_SECRET?: string;
  /** Base64 of 24 … 64 bytes, with or without `whsec_` before it. */
  readonly STANDARD_WEBHOOKS_SECRET?: string;
  /** `UPSTASH_REDIS_REST_URL_1`, `UPSTASH_REDIS_REST_TOKEN_1`, …: one pair per endpoint, or a single pair without numbers. */
  readonly [upstash: `UPSTASH_REDIS_REST_${string}`]: string;
}

/** A binding is missing or unusable. Its message names it, and never repeats its value. */
export class BindingError extends Error {
  override readonly name = "BindingError";
  /** What to do about it. */
  readonly hint: string;

  constructor(message: string, hint: string) {
    super(message);
    this.hint = hint;
  }
}

const secretHint =
  "Run `npx wrangler secret put NAME` for the deployed Worker; locally, put it into .dev.vars (see .dev.vars.example).";

/**
 * The D1 database.
 *
 * @throws {BindingError} there is none
 *
 * @example
 * const { results } = await database(env).prepare("SELECT 1").all();
 */
export function database(env: Bindings): D1Database {
  if (env.DB) return env.DB;
  throw new BindingError("the binding DB is missing", "Bind a D1 database as DB in wrangler.toml.");
}

/**
 * A lock client on the endpoints that the bindings name. It is made anew for each request: that costs no
 * request, and nothing of one request can then leak into another.
 *
 * @throws {BindingError} a URL or a token is missing or unusable
 *
 * @example
 * await redlockOf(env).using("invoice:42", async (lock) => { … });
 */
export function redlockOf(env: Bindings, options?: LockOptions): Redlock {
  return orBindingError("UPSTASH_REDIS_REST_URL_1 and UPSTASH_REDIS_REST_TOKEN_1, …", () =>
    Redlock.fromEnv(env, options),
  );
}

/**
 * GitHub, with the secret from `GITHUB_WEBHOOK_SECRET`.
 *
 * @throws {BindingError} the secret is missing
 *
 * @example
 * const { id } = await githubOf(env).verify(request, body);
 */
export function githubOf(env: Bindings): WebhookProvider {
  const secret = secretOf(env, "GITHUB_WEBHOOK_SECRET");
  return orBindingError("GITHUB_WEBHOOK_SECRET", () => github({ secret }));
}

/**
 * Any sender of Standard Webhooks, with the secret from `STANDARD_WEBHOOKS_SECRET`.
 *
 * @throws {BindingError} the secret is missing, or not of its form
 *
 * @example
 * const { id } = await standardWebhooksOf(env).verify(request, body);
 */
export function standardWebhooksOf(env: Bindings): WebhookProvider {
  const secret = secretOf(env, "STANDARD_WEBHOOKS_SECRET");
  return orBindingError("STANDARD_WEBHOOKS_SECRET", () => standardWebhooks({ secret }));
}

function secretOf(env: Bindings, name: "GITHUB_WEBHOOK_SECRET" | "STANDARD_WEBHOOKS_SECRET"): string {
  const secret = env[name];
  if (secret) return secret;
  throw new BindingError(`the binding ${name} is missing`, secretHint.replace("NAME", name));
}

/** The library tells misuse by `TypeError` and `RangeError`, whose messages hold no secret. */
function orBindingError<Value>(names: string, make: () => Value): Value {
  try {
    return make();
  } catch (error) {
    const { message } = error as Error;
    throw new BindingError(`${names}: ${message}`, secretHint);
  }
}
