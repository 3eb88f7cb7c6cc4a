import { missingPartOf } from "../check/check.ts";
import {
  type Codec,
  Idempotency,
  type IdempotencyEvent,
  type Outcome,
  type RunContext,
  type RunOptions,
} from "../idempotency/index.ts";
import { isUnguarded } from "../idempotency/run.ts";
import { clientStateOf, type LockClient } from "../lock/client.ts";
import { type EventHook, emit } from "../lock/events.ts";
import { sharedByCopies } from "../runtime/copies.ts";
import { keepAlive, type WaitUntil } from "../runtime/runtime.ts";
import type { VerifiedWebhook } from "../webhooks/index.ts";
import { handlerOf, withPath } from "./handler.ts";
import {
  checkProvider,
  checkRetention,
  type Delivery,
  type HttpEvent,
  type ResolvedRules,
} from "./options.ts";
import { type Problem, problem, problemOf, problemResponse } from "./problem.ts";
import type { DeliveryOptions, RequestOptions } from "./route.ts";
import { captureResponse, replayResponse, responseCodec, type StoredResponse } from "./stored.ts";
import { warn } from "./warn.ts";

/** One request, and how to handle it. */
export interface Exchange extends RequestOptions {
  readonly request: Request;
  readonly waitUntil?: WaitUntil | undefined;
  /** The declared pattern of the route, if the framework knows it. */
  readonly pattern?: unknown;
  /** The run of middleware further out. */
  readonly outer?: IdempotentRun | undefined;
  /** The request's body, or undefined when it has more than `cap` bytes. */
  body(cap: number): Promise<Uint8Array | undefined>;
  /**
   * Runs the handler. Without a `run` it is unprotected. Without a `body`, the request's own body has not been read. Without a
   * provider there is no `delivery`.
   */
  handle(run?: IdempotentRun, body?: Uint8Array, delivery?: Delivery): Promise<Handled>;
}

/** The handler's answer. `failed`: it threw, and the response was made from its error. */
export interface Handled {
  readonly response: Response;
  readonly failed?: boolean;
  /** Its headers are all that would be sent: no runtime adds a type. */
  readonly isComplete?: boolean;
}

/** How a request was answered. */
export interface HttpAnswer {
  /**
   * - `executed`: by the handler, and the key is complete, or storing goes on.
   * - `failed`: by the handler, and the key is free.
   * - `replayed`: with a stored response.
   * - `refused`: with a problem.
   * - `unguarded`: by the handler without protection: there was no key, or with `failOpen` no store.
   */
  readonly status: "executed" | "failed" | "replayed" | "refused" | "unguarded";
  readonly response: Response;
}

/** A request's run, as frameworks hand it to the handler. */
export interface IdempotentRun extends RunContext {
  /** How the request was answered. Middleware further out sees undefined while the handler runs. */
  readonly status?: HttpAnswer["status"] | undefined;
}

/** Ends a run whose response is not to be stored, so that its key is free again. */
const notStored = new Error("the response is not stored");

/** Answers a webhook's duplicate where the response of the first delivery could not be stored. */
const emptySuccess: StoredResponse = { status: 200, headers: {}, body: undefined };

type Scope = NonNullable<DeliveryOptions["scope"]>;

/** A request with its key. */
interface KeyedRequest {
  readonly key: string;
  readonly handler: string | undefined;
  /** The key is to run once in each of these scopes. Usually there is one. */
  readonly scopes: readonly (Scope | undefined)[];
  readonly lock?: readonly string[] | undefined;
  readonly body: Uint8Array;
  readonly delivery?: Delivery;
}

/** The handlers of runs. Middleware within another belongs to its handler: if it is mounted twice, both see one key. */
const handlers = () => sharedByCopies("http.handlers", () => new WeakMap<object, string | undefined>());

/** Answers a request: the first of its key by the handler, later ones with the stored response. */
export async function serve(given: ResolvedRules, exchange: Exchange): Promise<HttpAnswer> {
  const tell: EventHook<HttpEvent> = (event) =>
    warn(clientStateOf(exchange.redlock).settings.runtime, event, given.webhook);
  const rules = given.onEvent ? given : { ...given, onEvent: tell };
  const { outer, pattern } = exchange;
  const handler = rules.handler ?? (outer ? handlers().get(outer) : handlerOf(pattern));
  // By the rules: a provider that is missing for one request must not let it in unverified.
  const admitted = await (rules.webhook ? admitDelivery : admitRequest)(rules, exchange, handler);
  return "key" in admitted ? answerOnce(rules, exchange, admitted) : admitted;
}

/** Finds the key of a request in its header. Without one, returns the answer. Nothing has been sent to Redis then. */
async function admitRequest(
  rules: ResolvedRules,
  exchange: Exchange,
  handler: string | undefined,
): Promise<KeyedRequest | HttpAnswer> {
  const { method, headers } = exchange.request;
  const header = headers.get(rules.header);
  // The others change nothing.
  const isGuarded = !/^(GET|HEAD|OPTIONS|TRACE)$/.test(method);
  if (header === null || !isGuarded) {
    const title = `The ${rules.header} header is missing: any text that is unique to the request`;
    if (rules.required && isGuarded) return refuse(rules, "", { ...problem("KEY_MISSING"), title });
    return { status: "unguarded", ...(await exchange.handle()) };
  }
  const key = parseKey(header);
  if (!key) return refuse(rules, "", problem("KEY_INVALID"));
  const { scope, lock } = await exchange.admitted();
  const body = await exchange.body(rules.maxRequestBody ?? 1_048_576);
  return body ? { key, handler, scopes: [scope], lock, body } : refuse(rules, key, problem("BODY_TOO_LARGE"));
}

/** Finds the key of a delivery: its key is its id, once it is verified. */
async function admitDelivery(
  rules: ResolvedRules,
  exchange: Exchange,
  handler: string | undefined,
): Promise<KeyedRequest | HttpAnswer> {
  const { request } = exchange;
  const provider = checkProvider(exchange.provider);
  // It may be another one for each request.
  checkRetention(provider, rules.runs);
  const body = await exchange.body(rules.maxRequestBody ?? provider.maxBody ?? 5_242_880);
  if (!body) return refuse(rules, "", problem("BODY_TOO_LARGE"));
  let verified: VerifiedWebhook;
  try {
    verified = await provider.verify(request, body);
  } catch (error) {
    const refusal = problemOf(error, rules.webhook);
    if (refusal?.code !== "WEBHOOK_INVALID") throw error;
    return refuse(rules, "", refusal, error);
  }
  // Secrets' tags concern the key only.
  const { secretTags, scope: given = [], ...rest } = verified;
  const delivery = { ...rest, scope: given, provider: provider.name, handler, body };
  const { scope, lock } = await exchange.admitted(delivery);
  const scopes = webhookScopes(delivery, secretTags, scope);
  return { key: verified.id, handler, scopes, lock, body, delivery };
}

/**
 * Parses an `Idempotency-Key` header: a string of RFC 8941 in quotes, or a bare key. Both forms give one key. The
 * parameters of RFC 8941 behind the quotes do not count. A bare key has none: a `;` in it is a part of the key.
 *
 * Undefined when the key is empty, longer than 255 characters, or contains anything but visible ASCII and spaces: runtimes
 * decode other bytes differently, so a retry could get another key. Undefined, too, when it is `undefined` or the like: all
 * requests of such a client would share it. A bare key has no comma: two headers arrive as
 * `a, b`, and it would be unclear which of them is the key.
 *
 * @example parseKey('"a-1"'). // "a-1", as is parseKey("a-1")
 */
export function parseKey(header: string): string | undefined {
  // A quote at the beginning means the quoted form. An incomplete one is not read as a bare key.
  const [, quoted = "", parameters = ""] = /^"((?:[^"\\]|\\["\\])*)"(.*)$/s.exec(header) ?? [];
  if (!parametersForm.test(parameters)) return undefined;
  const key = header.startsWith('"') ? quoted.replace(/\\(.)/g, "$1") : header;
  if (key === header && key.includes(",")) return undefined;
  return /^[ -~]{1,255}$/.test(key) && missingPartOf(key) !== key ? key : undefined;
}

/** The parameters of an item in RFC 8941: names, each with an integer, decimal, string, token, byte sequence or boolean. */
const parametersForm: RegExp =
  /^(?:; *[a-z*][a-z\d_.*-]*(?:=(?:-?\d{1,15}|-?\d{1,12}\.\d{1,3}|"(?:[ !#-[\]-~]|\\["\\])*"|[A-Za-z*][\w!#$%&'*+.^`|~:/-]*|:[\w+/=]*:|\?[01]))?)*$/;

/**
 * A delivery's scopes: one for each secret that its provider accepts, where the provider has no name of its own. While a
 * secret is rotated, some instances have the old secret, some both, and some the new one: any two that overlap in time
 * share a scope.
 */
function webhookScopes(
  { provider, scope }: Delivery,
  secretTags: VerifiedWebhook["secretTags"] = [],
  own: Scope = [],
): readonly Scope[] {
  const rest = [...scope, ...(typeof own === "string" ? [own] : own)];
  // In one order everywhere: two instances must not hold one scope each and wait for the other.
  const tags = [...new Set(secretTags)].sort();
  return tags.length === 0 ? [[provider, ...rest]] : tags.map((tag) => [provider, tag, ...rest]);
}

function refuse(rules: ResolvedRules, key: string, refusal: Problem, error?: unknown): HttpAnswer {
  const { status, code } = refusal;
  emit(rules.onEvent, { type: "refused", status, code, key: key || undefined, error });
  return { status: "refused", response: problemResponse(refusal) };
}

/** A request's run: where it runs, and its options without the scope. */
interface ResponseRun extends KeyedRequest {
  readonly redlock: LockClient;
  readonly options: Omit<RunOptions<StoredResponse>, "codec"> & { readonly codec: Codec<StoredResponse> };
}

/** The state of the handler. */
interface Handling {
  /** Undefined: the handler has not begun, or it has no protection. */
  run?: RunContext;
  response?: Response;
  thrown?: { readonly error: unknown };
}

/** Runs the handler unless an earlier request with this key has been answered. */
async function answerOnce(
  rules: ResolvedRules,
  exchange: Exchange,
  keyed: KeyedRequest,
): Promise<HttpAnswer> {
  const { request, redlock, deadline } = exchange;
  const { body, delivery } = keyed;
  const waitUntil = rules.runs.waitUntil ?? exchange.waitUntil ?? clientStateOf(redlock).options.waitUntil;
  const own = await rules.fingerprint?.(request, body);
  const fingerprint = comparesPath(rules) ? await withPath(request, own) : own;
  const options = { fingerprint, codec: responseCodec, deadline, waitUntil };
  const run: ResponseRun = { ...keyed, redlock, options };
  const handling: Handling = {};
  // The signal ends the waiting only: once the handler runs, it goes on, and its result is stored, even when the client
  // has gone.
  const waiting = { ...run, options: { ...options, signal: request.signal } };
  const work = runInScopes(rules, waiting, (context) => {
    if (!isUnguarded(context)) {
      handling.run = context;
      handlers().set(context, keyed.handler);
    }
    return runHandler(rules, () => exchange.handle(handling.run, body, delivery), handling);
  });
  // Where the platform stops the code when the client hangs up, this keeps it going.
  keepAlive({ waitUntil }, work);
  const answer = await work.then(
    ({ value }) =>
      handling.response
        ? ({ status: handling.run ? "executed" : "unguarded", response: handling.response } as const)
        : replay(value),
    (error: unknown) => answerFailure(rules, exchange, { run, handling, error }),
  );
  if (handling.run) Object.assign(handling.run, { status: answer.status });
  return answer;
}

/** Runs the handler, and returns the part of its response that is stored. */
async function runHandler(
  rules: ResolvedRules,
  handle: () => Promise<Handled>,
  handling: Handling,
): Promise<StoredResponse> {
  try {
    const { response, failed, isComplete } = await handle();
    // Without protection nothing is stored, so the response is passed on as it is.
    if (!handling.run) {
      handling.response = response;
      return emptySuccess;
    }
    const captured = failed ? { response } : await captureResponse(response, rules, isComplete);
    handling.response = captured.response;
    if (captured.stored) return captured.stored;
  } catch (error) {
    // Kept apart: a handler that acquires locks or runs others may throw this package's errors, too.
    handling.thrown = { error };
    throw error;
  }
  throw notStored;
}

/** The answer where there is no result: the handler has failed, did not run, or has lost its lease. */
async function answerFailure(
  rules: ResolvedRules,
  exchange: Exchange,
  failure: {
    readonly run: ResponseRun;
    readonly handling: Handling;
    readonly error: unknown;
  },
): Promise<HttpAnswer> {
  const { run, handling, error } = failure;
  const { key } = run;
  const { response, thrown } = handling;
  if (thrown) throw thrown.error;
  if (error === notStored && response) return { status: "failed", response };
  const refusal = refusalOf(rules, exchange.request, error);
  if (!refusal) throw error;
  // The sender only needs to know that the event was handled, and it was.
  if (refusal.code === "RESULT_UNAVAILABLE" && rules.webhook) return replay(emptySuccess);
  // After the handler nothing but the loss of the lease refuses.
  const stored = response && (await storedInstead(rules, run, response));
  if (stored) return replay(stored);
  if (refusal.code === "IN_PROGRESS" && key === exchange.outer?.key) {
    throw new TypeError(`${rules.what}() is mounted twice on this route, with the same key and scope`);
  }
  return refuse(rules, key, refusal, error);
}

/** The problem that an error of the run means. To the client, a lock that is held is a request under way. */
function refusalOf(rules: ResolvedRules, { signal }: Request, error: unknown): Problem | undefined {
  if (signal?.aborted && error === signal.reason) return problem("ABORTED");
  const { webhook, fingerprint } = rules;
  const refusal = problemOf(error, webhook);
  if (refusal?.code === "LOCK_HELD") return { ...refusal, status: problem("IN_PROGRESS", webhook).status };
  const isPath = refusal?.code === "FINGERPRINT_MISMATCH" && comparesPath(rules) && !fingerprint;
  return isPath ? problem("HANDLER_MISMATCH") : refusal;
}

/** Whether deliveries to this route must come to one path: nothing else says which of several handlers they are for. */
function comparesPath({ webhook, handler }: ResolvedRules): boolean {
  return webhook && handler === undefined;
}

/** The result of the run that took over, to send in place of the handler's response. */
async function storedInstead(
  rules: ResolvedRules,
  run: ResponseRun,
  response: Response,
): Promise<StoredResponse | undefined> {
  // This response is not sent, and must not keep the source of its stream open.
  void response.body?.cancel().catch(() => undefined);
  // Where that run has no result either, the handler must not run once more.
  const again = runInScopes(rules, { ...run, lock: undefined }, () => Promise.reject(notStored));
  return (await again.catch(() => undefined))?.value;
}

function replay(stored: StoredResponse): HttpAnswer {
  return { status: "replayed", response: replayResponse(stored) };
}

/**
 * Runs the handler in all scopes, the first outermost: each outer run has the result of the run within it. A key that is
 * complete in any scope does not run again. They are reported as one run: the one that ends first,
 * which is the innermost that began.
 */
function runInScopes(
  rules: ResolvedRules,
  { redlock, key, handler: name, scopes, lock, options }: ResponseRun,
  handler: (context: RunContext) => Promise<StoredResponse>,
): Promise<Outcome<StoredResponse>> {
  let hasEnded = false;
  const onEvent: EventHook<IdempotencyEvent> = (event) => {
    if (!hasEnded) emit(rules.onEvent, event);
    hasEnded = true;
  };
  const idempotency = new Idempotency(redlock, { ...rules.runs, onEvent });
  const enter = (index: number): Promise<Outcome<StoredResponse>> => {
    const isLast = index === scopes.length - 1;
    // The innermost run holds the lock: those around it would wait for each other.
    const scope = scopes[index];
    const ofKey = { ...(scope && { scope }), kind: "http", handler: name } as const;
    const scoped = { ...options, ...ofKey, failOpen: rules.failOpen, lock: isLast ? lock : undefined };
    return idempotency.run(key, scoped, isLast ? handler : async () => (await enter(index + 1)).value);
  };
  return enter(0);
}
