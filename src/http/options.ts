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
  /** The provider's name. */
  readonly provider: string;
  /** Names that the id is unique within, besides the provider's name. It is empty if the id alone identifies the event. */
  readonly scope: readonly string[];
  /** Its handler: the option `handler`, or the route's pattern, or undefined if neither is known. */
  readonly handler: string | undefined;
  /** The bytes that were verified. They are not copied: do not change them. */
  readonly body: Uint8Array;
}

/** What happened to a request or its key. */
export type HttpEvent =
  | IdempotencyEvent
  /** A problem was sent: the handler did not run, or its response was not sent. */
  | {
      readonly type: "refused";
      readonly status: number;
      readonly code: ProblemCode;
      /** Undefined where the request has no valid key. */
      readonly key: string | undefined;
      /** The error, where there was one: for example the `QuorumError`, whose details the client does not get. */
      readonly error: unknown;
    };

/** What does not differ between requests. `undefined` leaves the default in place. */
export interface HttpRules extends Omit<IdempotencyOptions, "onEvent"> {
  /**
   * The name of the handler, 1 to 255 visible ASCII characters without `*`. It is part of every key, so that two handlers
   * that share a secret both run. Set it before you move a route: another default is another key, and a delivery that is
   * retried across the deployment would run twice. Default: the route's declared pattern, for example `/hooks/:tenant`.
   * If the framework knows none (`withIdempotency`, Express' `app.use`, a wildcard), keys have no handler. Without this option
   * a delivery that was handled at another path is refused: 500 `HANDLER_MISMATCH`.
   */
  readonly handler?: string | undefined;
  /**
   * How long a response is kept, in ms. For webhooks at least as long as the sender retries (`retries` of the provider), else
   * a RangeError. Default: 24 hours, or 7 days for webhooks, which is enough for every sender of this package.
   */
  readonly retention?: number | undefined;
  /**
   * How long a duplicate waits for the first request's response, in ms. Default 0. For webhooks the default is 2 000 and the
   * maximum 60 000: it must be below the sender's timeout.
   */
  readonly wait?: number | undefined;
  /** The name of the header with the key. Not for webhooks. Default `Idempotency-Key`. */
  readonly header?: string | undefined;
  /**
   * Whether a request without a key is refused (400). If false, the handler runs unprotected for such a request. Not for
   * webhooks, and not for GET, HEAD, OPTIONS and TRACE, which need no key. Default true.
   */
  readonly required?: boolean | undefined;
  /**
   * The part of a request that must be equal whenever the key is used again, else you get a 422. `true` compares method, path
   * with query, and body. `false` compares nothing. You can also pass a function. Default true. For webhooks the default is
   * false, because the body of a redelivery may differ.
   */
  readonly fingerprint?: boolean | Fingerprint | undefined;
  /**
   * Whether the handler runs unprotected when no quorum answers. Not for webhooks: their senders try again. Default
   * false: 503.
   */
  readonly failOpen?: boolean | undefined;
  /**
   * Whether a response is stored and replayed: true or false. If false, the key is free again. Not called when the handler
   * throws, or for 206, which is never stored: then the key is free, too. Default: all but 5xx, 401, 403, 407, 408, 409, 423,
   * 425, 426, 429 and 499. For webhooks the default is 2xx only.
   */
  readonly store?: ((response: Response) => boolean) | undefined;
  /**
   * Headers of the response that are not stored, so that only the first request gets them. Headers of a single message or
   * connection (such as date, content-length and x-request-id), cookies, and CORS headers are never stored. Default: all others
   * are.
   */
  readonly omitHeaders?: readonly string[] | undefined;
  /**
   * The most bytes that a request's body may have, else 413: an integer from 0 to 2^31. Default 1 048 576 (1 MiB). For webhooks
   * the default is the maximum that the sender documents (`maxBody` of the provider), else 5 242 880 (5 MiB).
   */
  readonly maxRequestBody?: number | undefined;
  /**
   * The most bytes of a response's body that are stored. A larger body is treated as a stream. At most half of
   * `maxResult`, less 16 384: a byte may take two in the request, and headers are stored with it. Default 262 144
   * (256 KiB), or that bound if it is less.
   */
  readonly maxResponseBody?: number | undefined;
  /**
   * Called with every event. Its errors are ignored. Default: a line on `console.warn`, at most one per kind and minute, for
   * an outage, a delivery that is not genuine, and what else an operator should know.
   */
  readonly onEvent?: EventHook<HttpEvent> | undefined;
}

/** An option's value, or a function that returns it for each request. No option's own value is a function. */
export type PerRequest<Value, Given extends readonly unknown[]> =
  | Value
  | ((...given: Given) => Value | Promise<Value>);

/**
 * Options of a route. Those that differ between requests may be functions of its `Context`: the framework's arguments for a
 * request.
 */
export interface RouteOptions<
  Context extends readonly unknown[],
  Given extends Delivery | undefined = Delivery | undefined,
> extends HttpRules {
  readonly redlock: PerRequest<LockClient, Context>;
  /** The sender of webhooks: the ids of its deliveries are the keys. Only genuine deliveries reach Redis. */
  readonly provider?: PerRequest<WebhookProvider, Context> | undefined;
  /**
   * The owner of the keys: tenant, account, user. Pass one name or several. Without it, any client that knows a key and its
   * request gets the response. A webhook's scope begins with the provider's name, followed by the provider's additions. A
   * function also gets the verified delivery, if there is a `provider`. `undefined`, given or returned, is a TypeError: a
   * missing owner would share the keys of all. Default: none.
   */
  readonly scope?: PerRequest<string | readonly string[], [...context: Context, delivery: Given]>;
  /**
   * Locks these resources while the handler runs, and needs no further requests: one name or several, or a function, as
   * `scope`. The run has a fence. If the lock is held, the request waits for at most `wait` ms. After that, you get the answer
   * for a request in flight. Without a key the handler runs without the lock. Default: none.
   */
  readonly lock?: PerRequest<string | readonly string[], [...context: Context, delivery: Given]> | undefined;
  /** Wall-clock time in ms since 1970 at which the platform stops the code. It bounds lease and waiting. Default: none. */
  readonly deadline?: PerRequest<number, Context> | undefined;
}

/** Options of {@link withIdempotency}. */
export interface HttpOptions<Given extends Delivery | undefined = Delivery | undefined>
  extends RouteOptions<[], Given> {
  readonly redlock: LockClient;
  readonly provider?: WebhookProvider | undefined;
  readonly deadline?: number | undefined;
}

/** {@link HttpOptions} with a provider: every request that reaches the handler is a verified delivery. */
export interface WebhookOptions extends HttpOptions<Delivery> {
  readonly provider: WebhookProvider;
}

/** Options with a lock: the handler's run has a fence. */
export type Locked<Options extends { readonly lock?: unknown }> = Options & {
  readonly lock: NonNullable<Options["lock"]>;
};

/** {@link HttpRules} with every default filled in. */
export interface ResolvedRules extends StoragePolicy {
  /** The name of the function that took the options. */
  readonly what: string;
  readonly webhook: boolean;
  /** Undefined: the default, which depends on the route. */
  readonly handler: string | undefined;
  readonly header: string;
  readonly required: boolean;
  readonly failOpen: boolean;
  readonly fingerprint: Fingerprint | undefined;
  /** Undefined: the default, which depends on the provider. */
  readonly maxRequestBody: number | undefined;
  readonly runs: IdempotencyOptions;
  readonly onEvent: EventHook<HttpEvent> | undefined;
}

/**
 * Statuses that a retry may change: 401, 403 and 407 depend on credentials, which a retry may have renewed and which are not
 * in the fingerprint, and 426 on the connection. 423 is the answer of a lock around the handler.
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

/**
 * Fills in the defaults, and checks everything that does not differ between requests.
 *
 * @param what name of the function that takes the options, for errors
 * @throws TypeError | RangeError naming the option
 */
export function resolveRules(what: string, options: RouteOptions<never, never>): ResolvedRules {
  checkType("options", options, "object");
  // A scope that is undefined is a tenant that is missing.
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

/** Whether a retry would get an equal answer. */
function isFinal({ status }: Response): boolean {
  return status < 500 && !transientStatuses.includes(status);
}

/** The options of `Idempotency`. `onEvent` is set for each request. */
function runOptions(given: HttpRules, webhook: boolean): IdempotencyOptions {
  const ofRuns = Object.entries(given).filter(([name]) => name !== "onEvent" && name in idempotencySchema);
  const runs: IdempotencyOptions = {
    wait: webhook ? 2_000 : 0,
    retention: (webhook ? 7 : 1) * 86_400_000,
    ...Object.fromEntries(ofRuns),
  };
  if (webhook) checkNumber("wait", runs.wait!, 0, 60_000);
  // Checked at set-up, even where the client is made for each request.
  resolveIdempotency({ settings: {} as ClientParts, options: {} }, runs);
  return runs;
}

/** A value as the check wants it, or a function that returns one for each request. */
function orFunction<Value>(check: (name: string, value: Value) => unknown): Check {
  return (name, value: Value) => typeof value === "function" || check(name, value);
}

/** Checks a client, or a function that returns one for each request. */
export function checkClient(redlock: unknown): void {
  if (redlock === undefined) {
    throw new TypeError("redlock is missing from the options: give them as { redlock }");
  }
  if (typeof redlock !== "function") clientStateOf(redlock as LockClient);
}

/** @throws TypeError where it is not a provider, for example one that was not called */
export function checkProvider(provider: WebhookProvider | undefined): WebhookProvider {
  if (typeof Object(provider).verify === "function") return provider!;
  throw wrongType("provider", provider, "a sender of webhooks, for example github({ secret })");
}

/** The name of a handler. `*` stands for none in an inbox. */
function checkHandler(option: string, name: string): void {
  if (!/^[!-)+-~]{1,255}$/.test(checkType(option, name, "string"))) {
    throw new RangeError(
      `${option} must be 1 to 255 visible ASCII characters without *, got ${JSON.stringify(name.slice(0, 80))}`,
    );
  }
}

/**
 * Refuses a retention that is over while the sender may still retry: its retry would run the handler again.
 *
 * @throws RangeError naming both times
 */
export function checkRetention(
  { name, retries = 0 }: WebhookProvider,
  { retention = 0 }: IdempotencyOptions,
): void {
  if (retention >= retries) return;
  const inSeconds = retention * 1_000;
  // Nobody who writes seconds means more than a month.
  const hint =
    inSeconds >= retries && inSeconds <= 31 * 86_400_000 ? `; did you mean ${grouped(inSeconds)}?` : "";
  throw new RangeError(
    `retention is ${grouped(retention)} ms, and ${name} retries a delivery for ${grouped(retries)} ms: a retry after the retention would run again${hint}`,
  );
}

/** An integer as it is written in code: 604_800_000. */
function grouped(integer: number): string {
  return String(integer).replace(/\B(?=(?:\d{3})+$)/g, "_");
}

/** The name of a header. */
function checkHeader(option: string, name: string): void {
  if (!/^[-!#$%&'*+.^_`|~0-9a-z]+$/i.test(checkType(option, name, "string"))) {
    throw new TypeError(`${option} must be the name of a header, got ${JSON.stringify(name)}`);
  }
}
