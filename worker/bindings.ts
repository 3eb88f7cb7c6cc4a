/** What wrangler.toml binds, and the secrets that README.md lists. A sender without a secret is not used. */
export interface Bindings {
  /** The D1 database with the tables of schema.sql. */
  readonly DB: D1Database;
  /** Opens the page: at least 32 characters. */
  readonly JOURNAL_SECRET?: string;
  readonly GITHUB_WEBHOOK_SECRET?: string;
  readonly STANDARD_WEBHOOKS_SECRET?: string;
  readonly STRIPE_WEBHOOK_SECRET?: string;
  /** `UPSTASH_REDIS_REST_URL_1`, `UPSTASH_REDIS_REST_TOKEN_1`, …: a pair for each endpoint. */
  readonly [upstash: `UPSTASH_REDIS_REST_${string}`]: string;
}
