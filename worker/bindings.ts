import { endpointsFromEnv, type LockOptions, Redlock } from "../src/index.ts";

/**
 * The Worker's bindings: see wrangler.toml and `.dev.vars.example`. Any of them may be missing: nothing checks a
 * deployment's configuration before the first request does. A sender without a secret is not used.
 */
export interface Bindings {
  /** The D1 database with the tables of schema.sql. */
  readonly DB?: D1Database;
  /** What one must give to see what was delivered: at least 32 characters, random. Without it nobody sees it. */
  readonly JOURNAL_SECRET?: string;
  /** The secret from GitHub's webhook settings. */
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
  /** `UPSTASH_REDIS_REST_URL_1`, `UPSTASH_REDIS_REST_TOKEN_1`, …: a pair per endpoint, or one pair without numbers. */
  readonly [upstash: `UPSTASH_REDIS_REST_${string}`]: string;
}

/** A binding is missing or unusable. The message names the binding and never contains its value. */
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
 * The command that sets a secret, as a hint for an operator.
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
 * @throws {BindingError} the binding is missing
 *
 * @example
 * const { results } = await database(env).prepare("SELECT 1").all();
 */
export function database(env: Bindings): D1Database {
  if (env.DB) return env.DB;
  throw new BindingError("the binding DB is missing", "Bind a D1 database as DB in wrangler.toml.");
}

/**
 * Makes a lock client on the endpoints that the bindings name. Make one for each request: that sends no request to
 * Redis, and no state of one request can leak into another.
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
 * Calls `make`, and turns an error of it into one that names bindings.
 *
 * @param names the bindings that `make` reads
 * @throws {BindingError} one of them is missing or unusable. The library throws `TypeError` and `RangeError` then, whose
 * messages contain no secret
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
