import { endpointsFromEnv, type LockOptions, Redlock } from "../src/index.ts";

/**
 * What the Worker is given: see wrangler.toml and `.dev.vars.example`. Each may be missing: nothing checks a
 * deployment's configuration before the first request does, and a sender without a secret is one that is not used.
 */
export interface Bindings {
  /** The D1 database with the tables of schema.sql. */
  readonly DB?: D1Database;
  /** The secret typed into GitHub's webhook settings. */
  readonly GITHUB_WEBHOOK_SECRET?: string;
  /** Base64 of 24 … 64 bytes, with or without `whsec_` before it. */
  readonly STANDARD_WEBHOOKS_SECRET?: string;
  /** The signing secret of the endpoint in Stripe, `whsec_…`. */
  readonly STRIPE_WEBHOOK_SECRET?: string;
  /** The client secret of the app in Shopify. */
  readonly SHOPIFY_CLIENT_SECRET?: string;
  /** The signing secret of the app in Slack. */
  readonly SLACK_SIGNING_SECRET?: string;
  /** The signing secret of the webhook in Linear. */
  readonly LINEAR_WEBHOOK_SECRET?: string;
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

/**
 * How to set a secret.
 *
 * @example
 * throw new BindingError("the binding GITHUB_WEBHOOK_SECRET is missing", secretHint("GITHUB_WEBHOOK_SECRET"));
 */
export function secretHint(name: string): string {
  return `Run \`npx wrangler secret put ${name}\` for the deployed Worker; locally, put it into .dev.vars (see .dev.vars.example).`;
}

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
  return orBindingError(
    "UPSTASH_REDIS_REST_URL_1 and UPSTASH_REDIS_REST_TOKEN_1, …",
    () => new Redlock({ ...options, endpoints: endpointsFromEnv(env) }),
  );
}

/**
 * What `make` makes of the bindings `names`.
 *
 * @throws {BindingError} one of them is missing or unusable: the library tells that by `TypeError` and
 * `RangeError`, whose messages hold no secret
 *
 * @example
 * const provider = orBindingError("GITHUB_WEBHOOK_SECRET", () => github({ secret }));
 */
export function orBindingError<Value>(names: string, make: () => Value): Value {
  try {
    return make();
  } catch (error) {
    const { message } = error as Error;
    throw new BindingError(`${names}: ${message}`, secretHint("NAME"));
  }
}
