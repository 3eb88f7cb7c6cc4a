import { checkInteger, checkNames, checkNumber, checkType } from "../check.ts";
import type { EventHook } from "../events.ts";
import { optionNames } from "../idempotency/idempotency.ts";
import { Idempotency, type IdempotencyEvent, type IdempotencyOptions } from "../idempotency/index.ts";
import { mergeOptions } from "../lock/options.ts";
import type { Redlock } from "../redlock.ts";
import { systemRuntime } from "../runtime.ts";
import type { WebhookProvider } from "../webhooks/index.ts";
import type { ProblemCode } from "./problem.ts";
import type { Keeping } from "./stored.ts";

/** What happened to a request, beside what happened to its key. */
export type HttpEvent =
  | IdempotencyEvent
  /** The handler did not run, or its response was not sent, and a problem was answered. */
  | {
      readonly type: "refused";
      readonly status: number;
      readonly code: ProblemCode;
      /** Undefined where it came to none. */
      readonly key: string | undefined;
      /** Why, where there was an error: e.g. the `QuorumError`, of which the client is told nothing more. */
      readonly error: unknown;
    }
  /** No quorum could be reached, and with `failOpen` the handler runs without protection. */
  | { readonly type: "unguarded"; readonly key: string; readonly error: unknown };

/** What must be the same whenever a key is used again. */
export type Fingerprint = (
  request: Request,
  body: Uint8Array,
) => string | Uint8Array | undefined | Promise<string | Uint8Array | undefined>;

/** What does not differ between requests. `undefined` leaves the default in place. */
export interface HttpRules extends Omit<IdempotencyOptions, "onEvent"> {
  /**
   * Length of a result's life, in ms. Default: 24 hours; for webhooks 7 days, longer than senders go on retrying.
   */
  readonly retention?: number | undefined;
  /**
   * How long a duplicate waits for the first request's response, in ms. Default 0; for webhooks 2 000, and at
   * most 60 000: it must be below the sender's timeout.
   */
  readonly wait?: number | undefined;
  /** The header with the key; not for webhooks. Default `Idempotency-Key`. */
  readonly header?: string | undefined;
  /**
   * Whether a request without a key is refused (400) or passed through unprotected; not for webhooks. GET, HEAD,
   * OPTIONS and TRACE without a key are always passed through. Default true.
   */
  readonly required?: boolean | undefined;
  /**
   * What must be the same whenever the key is used again, else 422: true for method, path with query and body,
   * false for nothing, or a function. Default true; for webhooks false: a redelivery's body may differ.
   */
  readonly fingerprint?: boolean | Fingerprint | undefined;
  /**
   * Whether the handler runs, unprotected, when no quorum can be reached; not for webhooks, whose senders try
   * again. Default false: 503.
   */
  readonly failOpen?: boolean | undefined;
  /**
   * Which responses are stored and answered again; after the others the key is free. A handler that throws is
   * never asked for. Default: all but 5xx, 401, 403, 408, 409, 423, 425, 429 and 499; for webhooks only 2xx.
   */
  readonly store?: ((response: Response) => boolean) | undefined;
  /**
   * Further headers that are stored, beside content-type, content-language, location and etag. Headers that
   * belong to one message, to one connection or to CORS cannot be. Default: none.
   */
  readonly headers?: readonly string[] | undefined;
  /** The most bytes a request's body may have, else 413. Default 1 048 576 (1 MiB). */
  readonly maxRequestBody?: number | undefined;
  /**
   * The most bytes that are stored of a response's body; a larger one counts as a stream. At most half of
   * `maxResult` less 16 384, because a byte may take two in the request, and headers are stored with it. Default
   * 262 144 (256 KiB), or that bound if it is less.
   */
  readonly maxResponseBody?: number | undefined;
  /**
   * What is stored of a response that is too large, a stream or encoded, and is never held back: `"status"` (and
   * headers; duplicates get them with an empty body and `Idempotent-Body: omitted`), or `"nothing"`: the key is
   * free as soon as the response begins, and a duplicate runs again. Default `"status"`.
   */
  readonly streams?: "status" | "nothing" | undefined;
  /** Hears what happens. What it throws changes nothing. Default: none. */
  readonly onEvent?: EventHook<HttpEvent> | undefined;
}

/** Options of {@link withIdempotency}. */
export interface HttpOptions extends HttpRules {
  readonly redlock: Redlock;
  /** The sender of webhooks: its deliveries' ids are the keys, and nothing but genuine ones gets to Redis. */
  readonly provider?: WebhookProvider | undefined;
  /**
   * Whose keys these are: tenant, account, user; one name or several. Without it, whoever knows a key and the
   * request that went with it gets the response. A webhook's scope begins with what its provider says.
   */
  readonly scope?: string | readonly string[] | undefined;
  /** Wall-clock time in ms since 1970 at which the platform stops the code; bounds lease and waiting. */
  readonly deadline?: number | undefined;
}

/** Rules with every default filled in. */
export interface ResolvedRules extends Keeping {
  readonly webhook: boolean;
  readonly header: string;
  readonly required: boolean;
  readonly failOpen: boolean;
  readonly fingerprint: Fingerprint | undefined;
  readonly maxRequestBody: number;
  readonly runs: IdempotencyOptions;
  readonly onEvent: EventHook<HttpEvent> | undefined;
}

// Of one message or one connection, secret, or made anew for whoever asks.
const neverKept =
  /^(set-cookie2?|date|age|content-(length|encoding|range)|transfer-encoding|connection|keep-alive|te|trailer|upgrade|proxy-.*|cf-.*|access-control-.*|idempotent-.*)$/;

/**
 * About this attempt, not about the request: 401 and 403 depend on credentials, which a retry may have renewed and
 * the fingerprint leaves out; 423 is what a lock around the handler answers.
 */
const aboutAttempt = [401, 403, 408, 409, 423, 425, 429, 499];

// As a record, so that the compiler notices when one is missing.
const names: Readonly<Record<keyof HttpOptions, 1>> = {
  ...optionNames,
  redlock: 1,
  provider: 1,
  scope: 1,
  deadline: 1,
  header: 1,
  required: 1,
  fingerprint: 1,
  failOpen: 1,
  store: 1,
  headers: 1,
  maxRequestBody: 1,
  maxResponseBody: 1,
  streams: 1,
};

/**
 * Fills in the defaults and checks everything.
 *
 * @param what the function whose options they are
 * @throws TypeError | RangeError naming the option
 */
export function resolveRules(what: string, options: HttpRules, webhook: boolean): ResolvedRules {
  checkNames(what, options, names);
  const given = mergeOptions<HttpRules>(options);
  const { fingerprint = !webhook, headers = [], onEvent, store, maxResult = 1_000_000 } = given;
  const mostBody = Math.max(0, Math.floor(maxResult / 2) - 16_384);
  const rules: ResolvedRules = {
    webhook,
    header: checkType("header", given.header ?? "idempotency-key", "string"),
    required: checkType("required", given.required ?? true, "boolean"),
    failOpen: checkType("failOpen", given.failOpen ?? false, "boolean"),
    fingerprint: typeof fingerprint === "boolean" ? (fingerprint ? ofRequest : undefined) : fingerprint,
    store:
      store ?? (webhook ? ({ ok }) => ok : ({ status }) => status < 500 && !aboutAttempt.includes(status)),
    headers: ["content-type", "content-language", "location", "etag", ...headers.map(checkHeader)],
    maxRequestBody: checkInteger("maxRequestBody", given.maxRequestBody ?? 1_048_576, 0, 2 ** 31),
    maxResponseBody: checkInteger(
      "maxResponseBody",
      given.maxResponseBody ?? Math.min(262_144, mostBody),
      0,
      mostBody,
    ),
    streams: given.streams ?? "status",
    runs: mergeOptions<IdempotencyOptions>(
      { wait: webhook ? 2_000 : 0, retention: (webhook ? 7 : 1) * 86_400_000 },
      Object.fromEntries(Object.entries(given).filter(([name]) => name !== "onEvent" && name in optionNames)),
    ),
    onEvent: onEvent && checkType("onEvent", onEvent, "function"),
  };
  new Headers([[rules.header, ""]]); // throws what names no header
  checkType("store", rules.store, "function");
  if (!/^(status|nothing)$/.test(rules.streams)) {
    throw new RangeError(`streams must be "status" or "nothing", got ${JSON.stringify(rules.streams)}`);
  }
  if (rules.fingerprint) checkType("fingerprint", rules.fingerprint, "function");
  if (webhook) {
    checkNumber("wait", rules.runs.wait ?? 0, 0, 60_000);
    if (rules.failOpen) throw new RangeError("failOpen is not for webhooks: their senders try again");
  }
  // Checked now, even where the client is made anew for each request.
  new Idempotency({ settings: { endpoints: [], runtime: systemRuntime }, options: {} } as never, rules.runs);
  return rules;
}

/** A client, or what makes one for each request. */
export function checkClient(redlock: unknown): void {
  if (typeof redlock !== "function") checkType("redlock.acquire", Object(redlock).acquire, "function");
}

/** A provider, or what makes one for each request. */
export function checkProvider(provider: unknown): void {
  if (typeof provider !== "function") checkType("provider.verify", Object(provider).verify, "function");
}

function checkHeader(name: string): string {
  const lower = checkType("headers", name, "string").toLowerCase();
  new Headers([[lower, ""]]);
  if (neverKept.test(lower))
    throw new RangeError(`headers must not name ${name}: it belongs to one response`);
  return lower;
}

/** Method and path have no line feeds, so nothing can be moved from one part to another. */
function ofRequest({ method, url }: Request, body: Uint8Array): Uint8Array {
  const { pathname, search } = new URL(url);
  const head = new TextEncoder().encode(`${method}\n${pathname}${search}\n`);
  const whole = new Uint8Array(head.length + body.length);
  whole.set(head);
  whole.set(body, head.length);
  return whole;
}
