import {
  type Check,
  checkInteger,
  checkNumber,
  checkOptions,
  checkType,
  integer,
  later,
  type Schema,
  typed,
  wrongType,
} from "../check/check.ts";
import { checkScope } from "../idempotency/digest.ts";
import { idempotencySchema, resolveIdempotency } from "../idempotency/idempotency.ts";
import type { IdempotencyEvent, IdempotencyOptions } from "../idempotency/index.ts";
import { clientStateOf, type LockClient } from "../lock/client.ts";
import type { EventHook } from "../lock/events.ts";
import { type ClientParts, checkResources, mergeOptions } from "../lock/options.ts";
import type { VerifiedWebhook, WebhookProvider } from "../webhooks/index.ts";
import { type Fingerprint, requestFingerprint } from "./fingerprint.ts";
import type { ProblemCode } from "./problem.ts";
import type { StoragePolicy } from "./stored.ts";

/** A webhook's delivery whose signature was verified. */
export interface Delivery extends Omit<VerifiedWebhook, "secretTags"> {
  readonly provider: string;
  /** The id is unique within these names and the provider's. */
  readonly scope: readonly string[];
  /** The option `handler`, else the route's pattern, if it is known. */
  readonly handler: string | undefined;
  /** The verified bytes. They are not copied, so don't change them. */
  readonly body: Uint8Array;
}

/** An event of a request or its key. */
export type HttpEvent =
  | IdempotencyEvent
  /** The handler did not run, or its response was not sent. */
  | {
      readonly type: "refused";
      readonly status: number;
      readonly code: ProblemCode;
      /** Undefined without a valid key. */
      readonly key: string | undefined;
      /** For example the `QuorumError`, whose details the client does not get. */
      readonly error: unknown;
    };

/** Options that are equal for all requests. */
export interface HttpRules extends Omit<IdempotencyOptions, "onEvent"> {
  /**
   * The handler's name, a part of every key, so that two handlers with one secret both run: 1 to 255 visible ASCII
   * characters without `*`. Set it before you move a route, or a delivery that is retried across the deployment runs
   * twice. Default: the route's pattern, if it is known.
   */
  readonly handler?: string | undefined;
  /**
   * How long a response is kept, in ms. Default 24 hours. For webhooks 7 days, and less than the provider's `retries`
   * is a RangeError.
   */
  readonly retention?: number | undefined;
  /**
   * How long a duplicate waits for the first response, in ms. Default 0. For webhooks 2 000, at most 60 000: stay below
   * the sender's timeout.
   */
  readonly wait?: number | undefined;
  /** The header with the key. Not for webhooks. Default `Idempotency-Key`. */
  readonly header?: string | undefined;
  /**
   * Refuses a request without a key (400), unless it is a GET, HEAD, OPTIONS or TRACE. If false, its handler runs
   * unprotected. Default true.
   */
  readonly required?: boolean | undefined;
  /**
   * The part of a request that must be equal when its key is used again, else 422: `true` for method, path with query,
   * and body, `false` for nothing, or a function. Default true. For webhooks false, because redeliveries may differ.
   */
  readonly fingerprint?: boolean | Fingerprint | undefined;
  /** Runs the handler unprotected when no quorum answers. Not for webhooks. Default false: 503. */
  readonly failOpen?: boolean | undefined;
  /**
   * Whether a response is stored and replayed. If false, the key is free again. Default: all but 5xx, 401, 403, 407,
   * 408, 409, 423, 425, 426, 429 and 499. For webhooks: 2xx.
   */
  readonly store?: ((response: Response) => boolean) | undefined;
  /**
   * Response headers that only the first request gets. Cookies, CORS headers, and headers of one message or connection
   * are never stored. Default: none.
   */
  readonly omitHeaders?: readonly string[] | undefined;
  /**
   * The most bytes of a request's body, else 413: 0 to 2^31. Default 1 048 576 (1 MiB). For webhooks the provider's
   * `maxBody`, else 5 242 880 (5 MiB).
   */
  readonly maxRequestBody?: number | undefined;
  /**
   * The most bytes of a stored response body, at most half of `maxResult`, less 16 384. Of a larger one, only status
   * and headers are stored. Default 262 144 (256 KiB), or that bound.
   */
  readonly maxResponseBody?: number | undefined;
  /** Called with every event. Its errors are ignored. Default: `console.warn`, at most one line per kind and minute. */
  readonly onEvent?: EventHook<HttpEvent> | undefined;
}

/** An option's value, or a function that returns it for each request. */
export type PerRequest<Value, Given extends readonly unknown[]> =
  | Value
  | ((...given: Given) => Value | Promise<Value>);

/** Options of a route. Functions among them get `Context`, the framework's arguments. */
export interface RouteOptions<
  Context extends readonly unknown[],
  Given extends Delivery | undefined = Delivery | undefined,
> extends HttpRules {
  readonly redlock: PerRequest<LockClient, Context>;
  /** The sender of webhooks, whose deliveries' ids are the keys. */
  readonly provider?: PerRequest<WebhookProvider, Context> | undefined;
  /**
   * The owner of the keys: tenant, account, user, one name or several. Without it, any client that knows a key and its
   * request gets the response. A function also gets the verified delivery. `undefined`, given or returned, is a
   * TypeError, because a missing owner would share everybody's keys. Default: none.
   */
  readonly scope?: PerRequest<string | readonly string[], [...context: Context, delivery: Given]>;
  /**
   * Locks these resources while the handler runs: one name, several, or a function, as `scope`. The run then has a
   * fence. A request waits for a held lock for up to `wait` ms, and is then answered as a request in flight. Default:
   * none.
   */
  readonly lock?: PerRequest<string | readonly string[], [...context: Context, delivery: Given]> | undefined;
  /** When the platform stops the code, in ms since 1970. Bounds lease and waiting. Default: none. */
  readonly deadline?: PerRequest<number, Context> | undefined;
}

/** Options of {@link withIdempotency}. */
export interface HttpOptions<Given extends Delivery | undefined = Delivery | undefined>
  extends RouteOptions<[], Given> {
  readonly redlock: LockClient;
  readonly provider?: WebhookProvider | undefined;
  readonly deadline?: number | undefined;
}

/** With a provider, every request that reaches the handler is a verified delivery. */
export interface WebhookOptions extends HttpOptions<Delivery> {
  readonly provider: WebhookProvider;
}

/** Options with a lock: the handler's run has a fence. */
export type Locked<Options extends { readonly lock?: unknown }> = Options & {
  readonly lock: NonNullable<Options["lock"]>;
};

export interface ResolvedRules extends StoragePolicy {
  readonly what: string;
  readonly webhook: boolean;
  readonly handler: string | undefined;
  readonly header: string;
  readonly required: boolean;
  readonly failOpen: boolean;
  readonly fingerprint: Fingerprint | undefined;
  readonly maxRequestBody: number | undefined;
  readonly runs: IdempotencyOptions;
  readonly onEvent: EventHook<HttpEvent> | undefined;
}

/**
 * 401, 403 and 407 may change by new credentials, which are not in the fingerprint, and 426 by a new connection. 423
 * comes from a lock around the handler.
 */
const transientStatuses = [401, 403, 407, 408, 409, 423, 425, 426, 429, 499];

const schema: Schema<RouteOptions<[]>> = {
  ...idempotencySchema,
  redlock: (_, redlock) => checkClient(redlock),
  provider: orFunction((_, provider: WebhookProvider) => checkProvider(provider)),
  scope: orFunction(checkScope),
  lock: orFunction((name, lock: string) => checkResources(lock, name)),
  deadline: later,
  handler: checkHandler,
  header: checkHeader,
  required: typed("boolean"),
  fingerprint(name, fingerprint: unknown) {
    if (typeof fingerprint !== "boolean") checkType(name, fingerprint, "function");
  },
  failOpen: typed("boolean"),
  store: typed("function"),
  omitHeaders(name, headers: unknown) {
    if (!Array.isArray(headers)) throw wrongType(name, headers, "an array of names");
    for (const header of headers) checkHeader(name, header);
  },
  maxRequestBody: integer(0, 2 ** 31),
  maxResponseBody: integer(0, 2 ** 31),
};

/** @throws TypeError | RangeError naming the option */
export function resolveRules(what: string, options: RouteOptions<never, never>): ResolvedRules {
  checkType("options", options, "object");
  // An undefined scope is a missing tenant.
  const hints = { required: "scope" in options ? ["redlock", "scope"] : ["redlock"] };
  const given = mergeOptions<HttpRules>(
    checkOptions<RouteOptions<[]>>(what, options as never, schema, hints),
  );
  const webhook = options.provider !== undefined;
  const { handler, header = "Idempotency-Key", required = true, failOpen = false, onEvent } = given;
  const { store = webhook ? isSuccess : isFinal, omitHeaders = [], maxResult = 1_000_000 } = given;
  const { fingerprint = !webhook, maxRequestBody } = given;
  const mostStored = Math.max(0, Math.floor(maxResult / 2) - 16_384);
  const { maxResponseBody = Math.min(262_144, mostStored) } = given;
  const runs = runOptions(given, webhook);
  if (webhook && typeof options.provider !== "function") checkRetention(options.provider!, runs);
  if (webhook && failOpen) throw new RangeError("failOpen is not for webhooks: their senders try again");
  return {
    what,
    webhook,
    handler,
    header: header.toLowerCase(),
    required,
    failOpen,
    fingerprint:
      typeof fingerprint === "function" ? fingerprint : fingerprint ? requestFingerprint : undefined,
    // A promise would always count as true.
    store: (response) => checkType("the result of store", store(response), "boolean"),
    omitHeaders: omitHeaders.map((name) => name.toLowerCase()),
    maxRequestBody,
    maxResponseBody: checkInteger("maxResponseBody", maxResponseBody, 0, mostStored),
    runs,
    onEvent,
  };
}

function isSuccess({ ok }: Response): boolean {
  return ok;
}

function isFinal({ status }: Response): boolean {
  return status < 500 && !transientStatuses.includes(status);
}

function runOptions(given: HttpRules, webhook: boolean): IdempotencyOptions {
  const ofRuns = Object.entries(given).filter(([name]) => name !== "onEvent" && name in idempotencySchema);
  const runs: IdempotencyOptions = {
    wait: webhook ? 2_000 : 0,
    retention: (webhook ? 7 : 1) * 86_400_000,
    ...Object.fromEntries(ofRuns),
  };
  if (webhook) checkNumber("wait", runs.wait!, 0, 60_000);
  // Checked at set-up, even if the client is made for each request.
  resolveIdempotency({ settings: {} as ClientParts, options: {} }, runs);
  return runs;
}

function orFunction<Value>(check: (name: string, value: Value) => unknown): Check {
  return (name, value: Value) => typeof value === "function" || check(name, value);
}

export function checkClient(redlock: unknown): void {
  if (redlock === undefined) {
    throw new TypeError("redlock is missing from the options: give them as { redlock }");
  }
  if (typeof redlock !== "function") clientStateOf(redlock as LockClient);
}

export function checkProvider(provider: WebhookProvider | undefined): WebhookProvider {
  if (typeof Object(provider).verify === "function") return provider!;
  throw wrongType("provider", provider, "a sender of webhooks, for example github({ secret })");
}

/** `*` stands for no handler in an inbox. */
function checkHandler(option: string, name: string): void {
  if (!/^[!-)+-~]{1,255}$/.test(checkType(option, name, "string"))) {
    throw new RangeError(
      `${option} must be 1 to 255 visible ASCII characters without *, got ${JSON.stringify(name.slice(0, 80))}`,
    );
  }
}

/** A retry after the retention would run the handler again. */
export function checkRetention(
  { name, retries = 0 }: WebhookProvider,
  { retention = 0 }: IdempotencyOptions,
): void {
  if (retention >= retries) return;
  const inSeconds = retention * 1_000;
  const hint =
    inSeconds >= retries && inSeconds <= 31 * 86_400_000 ? `; did you mean ${grouped(inSeconds)}?` : "";
  throw new RangeError(
    `retention is ${grouped(retention)} ms, and ${name} retries a delivery for ${grouped(retries)} ms: a retry after the retention would run again${hint}`,
  );
}

function grouped(integer: number): string {
  return String(integer).replace(/\B(?=(?:\d{3})+$)/g, "_");
}

function checkHeader(option: string, name: string): void {
  if (!/^[-!#$%&'*+.^_`|~0-9a-z]+$/i.test(checkType(option, name, "string"))) {
    throw new TypeError(`${option} must be the name of a header, got ${JSON.stringify(name)}`);
  }
}
