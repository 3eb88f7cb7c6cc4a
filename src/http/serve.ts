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

export interface Exchange extends RequestOptions {
  readonly request: Request;
  readonly waitUntil?: WaitUntil | undefined;
  readonly pattern?: unknown;
  readonly outer?: IdempotentRun | undefined;
  /** Undefined if the body has more than `cap` bytes. */
  body(cap: number): Promise<Uint8Array | undefined>;
  handle(run?: IdempotentRun, body?: Uint8Array, delivery?: Delivery): Promise<Handled>;
}

/** `failed`: it threw, and the response was made from its error. */
export interface Handled {
  readonly response: Response;
  readonly failed?: boolean;
  /** No runtime adds a content type. */
  readonly isComplete?: boolean;
}

export interface HttpAnswer {
  /**
   * - `executed`: by the handler, and the key is complete, or storing goes on.
   * - `failed`: by the handler, and the key is free.
   * - `replayed`: with a stored response.
   * - `refused`: with a problem.
   * - `unguarded`: by the handler, without a key, or with `failOpen` during an outage.
   */
  readonly status: "executed" | "failed" | "replayed" | "refused" | "unguarded";
  readonly response: Response;
}

/** The run, as frameworks pass it to the handler. */
export interface IdempotentRun extends RunContext {
  /** Undefined while the handler runs. */
  readonly status?: HttpAnswer["status"] | undefined;
}

const notStored = new Error("the response is not stored");

const emptySuccess: StoredResponse = { status: 200, headers: {}, body: undefined };

type Scope = NonNullable<DeliveryOptions["scope"]>;

interface KeyedRequest {
  readonly key: string;
  readonly handler: string | undefined;
  /** The key must run once in each. */
  readonly scopes: readonly (Scope | undefined)[];
  readonly lock?: readonly string[] | undefined;
  readonly body: Uint8Array;
  readonly delivery?: Delivery;
}

/** By run. Middleware within another belongs to the outer handler, so that both see one key if it is mounted twice. */
const handlers = () => sharedByCopies("http.handlers", () => new WeakMap<object, string | undefined>());

export async function serve(given: ResolvedRules, exchange: Exchange): Promise<HttpAnswer> {
  const tell: EventHook<HttpEvent> = (event) =>
    warn(clientStateOf(exchange.redlock).settings.runtime, event, given.webhook);
  const rules = given.onEvent ? given : { ...given, onEvent: tell };
  const { outer, pattern } = exchange;
  const handler = rules.handler ?? (outer ? handlers().get(outer) : handlerOf(pattern));
  // By the rules, because a provider that is missing for one request must not let it in unverified.
  const admitted = await (rules.webhook ? admitDelivery : admitRequest)(rules, exchange, handler);
  return "key" in admitted ? answerOnce(rules, exchange, admitted) : admitted;
}

async function admitRequest(
  rules: ResolvedRules,
  exchange: Exchange,
  handler: string | undefined,
): Promise<KeyedRequest | HttpAnswer> {
  const { method, headers } = exchange.request;
  const header = headers.get(rules.header);
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

async function admitDelivery(
  rules: ResolvedRules,
  exchange: Exchange,
  handler: string | undefined,
): Promise<KeyedRequest | HttpAnswer> {
  const { request } = exchange;
  const provider = checkProvider(exchange.provider);
  // The provider may differ by request.
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
  const { secretTags, scope: given = [], ...rest } = verified;
  const delivery = { ...rest, scope: given, provider: provider.name, handler, body };
  const { scope, lock } = await exchange.admitted(delivery);
  const scopes = webhookScopes(delivery, secretTags, scope);
  return { key: verified.id, handler, scopes, lock, body, delivery };
}

/**
 * Parses a quoted string of RFC 8941, whose parameters don't count, or a bare key. Both forms give one key.
 *
 * Undefined if the key is empty, longer than 255, or not visible ASCII and spaces, which runtimes decode differently,
 * so a retry could get another key. A key `undefined` or the like would be shared by all requests of its client, and
 * with a comma it may be two headers.
 */
export function parseKey(header: string): string | undefined {
  const [, quoted = "", parameters = ""] = /^"((?:[^"\\]|\\["\\])*)"(.*)$/s.exec(header) ?? [];
  if (!parametersForm.test(parameters)) return undefined;
  const key = header.startsWith('"') ? quoted.replace(/\\(.)/g, "$1") : header;
  if (key === header && key.includes(",")) return undefined;
  return /^[ -~]{1,255}$/.test(key) && missingPartOf(key) !== key ? key : undefined;
}

/** RFC 8941's parameters. */
const parametersForm: RegExp =
  /^(?:; *[a-z*][a-z\d_.*-]*(?:=(?:-?\d{1,15}|-?\d{1,12}\.\d{1,3}|"(?:[ !#-[\]-~]|\\["\\])*"|[A-Za-z*][\w!#$%&'*+.^`|~:/-]*|:[\w+/=]*:|\?[01]))?)*$/;

/**
 * One scope for each accepted secret. While a secret is rotated, instances have the old one, both, or the new one: any
 * two that overlap in time share a scope.
 */
function webhookScopes(
  { provider, scope }: Delivery,
  secretTags: VerifiedWebhook["secretTags"] = [],
  own: Scope = [],
): readonly Scope[] {
  const rest = [...scope, ...(typeof own === "string" ? [own] : own)];
  // Sorted, because two instances must not hold one scope each and wait for the other.
  const tags = [...new Set(secretTags)].sort();
  return tags.length === 0 ? [[provider, ...rest]] : tags.map((tag) => [provider, tag, ...rest]);
}

function refuse(rules: ResolvedRules, key: string, refusal: Problem, error?: unknown): HttpAnswer {
  const { status, code } = refusal;
  emit(rules.onEvent, { type: "refused", status, code, key: key || undefined, error });
  return { status: "refused", response: problemResponse(refusal) };
}

interface ResponseRun extends KeyedRequest {
  readonly redlock: LockClient;
  readonly options: Omit<RunOptions<StoredResponse>, "codec"> & { readonly codec: Codec<StoredResponse> };
}

interface Handling {
  /** Undefined: the handler has not begun, or is unprotected. */
  run?: RunContext;
  response?: Response;
  thrown?: { readonly error: unknown };
}

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
  // The signal ends only the waiting. A handler that has begun goes on, and its result is stored.
  const waiting = { ...run, options: { ...options, signal: request.signal } };
  const work = runInScopes(rules, waiting, (context) => {
    if (!isUnguarded(context)) {
      handling.run = context;
      handlers().set(context, keyed.handler);
    }
    return runHandler(rules, () => exchange.handle(handling.run, body, delivery), handling);
  });
  // For platforms that stop the code when the client disconnects.
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

async function runHandler(
  rules: ResolvedRules,
  handle: () => Promise<Handled>,
  handling: Handling,
): Promise<StoredResponse> {
  try {
    const { response, failed, isComplete } = await handle();
    if (!handling.run) {
      handling.response = response;
      return emptySuccess;
    }
    const captured = failed ? { response } : await captureResponse(response, rules, isComplete);
    handling.response = captured.response;
    if (captured.stored) return captured.stored;
  } catch (error) {
    // Kept apart, because a handler that uses locks may throw this package's errors, too.
    handling.thrown = { error };
    throw error;
  }
  throw notStored;
}

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
  if (refusal.code === "RESULT_UNAVAILABLE" && rules.webhook) return replay(emptySuccess);
  // After the handler, only the loss of the lease refuses.
  const stored = response && (await storedInstead(rules, run, response));
  if (stored) return replay(stored);
  if (refusal.code === "IN_PROGRESS" && key === exchange.outer?.key) {
    throw new TypeError(`${rules.what}() is mounted twice on this route, with the same key and scope`);
  }
  return refuse(rules, key, refusal, error);
}

/** For the client, a held lock is a request in flight. */
function refusalOf(rules: ResolvedRules, { signal }: Request, error: unknown): Problem | undefined {
  if (signal?.aborted && error === signal.reason) return problem("ABORTED");
  const { webhook, fingerprint } = rules;
  const refusal = problemOf(error, webhook);
  if (refusal?.code === "LOCK_HELD") return { ...refusal, status: problem("IN_PROGRESS", webhook).status };
  const isPath = refusal?.code === "FINGERPRINT_MISMATCH" && comparesPath(rules) && !fingerprint;
  return isPath ? problem("HANDLER_MISMATCH") : refusal;
}

/** Nothing else says which handler a delivery is for. */
function comparesPath({ webhook, handler }: ResolvedRules): boolean {
  return webhook && handler === undefined;
}

async function storedInstead(
  rules: ResolvedRules,
  run: ResponseRun,
  response: Response,
): Promise<StoredResponse | undefined> {
  // It is not sent, and must not keep its stream's source open.
  void response.body?.cancel().catch(() => undefined);
  const again = runInScopes(rules, { ...run, lock: undefined }, () => Promise.reject(notStored));
  return (await again.catch(() => undefined))?.value;
}

function replay(stored: StoredResponse): HttpAnswer {
  return { status: "replayed", response: replayResponse(stored) };
}

/**
 * Runs in all scopes, the first outermost, each with the result of the run within it. Only the innermost run that began
 * reports its events, because it ends first.
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
    // Only the innermost run locks, because the runs around it would wait for each other.
    const scope = scopes[index];
    const ofKey = { ...(scope && { scope }), kind: "http", handler: name } as const;
    const scoped = { ...options, ...ofKey, failOpen: rules.failOpen, lock: isLast ? lock : undefined };
    return idempotency.run(key, scoped, isLast ? handler : async () => (await enter(index + 1)).value);
  };
  return enter(0);
}
