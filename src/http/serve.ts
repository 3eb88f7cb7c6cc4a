import { type EventHook, emit } from "../events.ts";
import {
  type Codec,
  Idempotency,
  type IdempotencyEvent,
  type Outcome,
  type RunContext,
  type RunOptions,
} from "../idempotency/index.ts";
import type { Redlock } from "../redlock.ts";
import { runInBackground, type WaitUntil } from "../wait-until.ts";
import type { VerifiedWebhook, WebhookProvider } from "../webhooks/index.ts";
import { parseKey } from "./key.ts";
import type { ResolvedRules } from "./options.ts";
import { type Problem, problem, problemOf, problemResponse } from "./problem.ts";
import { captureResponse, replayResponse, responseCodec, type StoredResponse } from "./stored.ts";

/** One request, and how to handle it. */
export interface Exchange {
  readonly request: Request;
  readonly redlock: Redlock;
  readonly provider: WebhookProvider | undefined;
  readonly scope: Scope | undefined;
  readonly deadline: number | undefined;
  readonly waitUntil: WaitUntil | undefined;
  /** The request's body, or undefined when it has more than `cap` bytes. */
  body(cap: number): Promise<Uint8Array | undefined>;
  /**
   * Runs the handler. Without a `run` it is unprotected; without a `body` the request's own body has not been read.
   * `failed`: the handler threw, and the response was made from its error.
   */
  handle(
    run?: RunContext,
    body?: Uint8Array,
  ): Promise<{ readonly response: Response; readonly failed?: boolean }>;
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

/** Ends a run whose response is not to be stored, so that its key is free again. */
const notStored = new Error("the response is not stored");

/** Answers a webhook's duplicate where the response of the first delivery could not be stored. */
const emptySuccess: StoredResponse = { status: 200, headers: {}, body: undefined };

type Scope = string | readonly string[];

/** A request with its key. */
interface KeyedRequest {
  readonly key: string;
  /** The key is to run once in each of these scopes; usually one. */
  readonly scopes: readonly (Scope | undefined)[];
  readonly body: Uint8Array;
}

/** What the request itself decides, before anything is sent to Redis. */
type Admission =
  | ({ readonly kind: "keyed" } & KeyedRequest)
  /** No key, and none is required. */
  | { readonly kind: "unkeyed" }
  | { readonly kind: "refused"; readonly problem: Problem; readonly key: string; readonly error?: unknown };

/** Answers a request: the first of its key by the handler, later ones with the stored response. */
export async function serve(rules: ResolvedRules, exchange: Exchange): Promise<HttpAnswer> {
  const admission = await admit(rules, exchange);
  switch (admission.kind) {
    case "unkeyed":
      return { status: "unguarded", ...(await exchange.handle()) };
    case "refused":
      return refuse(rules, admission.key, admission.problem, admission.error);
    case "keyed":
      return new GuardedRequest(rules, exchange, admission).answer();
  }
}

/** Finds the key of a request: in its header, or as the id of a verified delivery. */
async function admit(rules: ResolvedRules, exchange: Exchange): Promise<Admission> {
  const { request, provider, scope } = exchange;
  let key = "";
  if (!rules.webhook) {
    const header = request.headers.get(rules.header);
    if (header === null) {
      const isSafe = /^(GET|HEAD|OPTIONS|TRACE)$/.test(request.method);
      if (rules.required && !isSafe) return { kind: "refused", problem: problem("KEY_MISSING"), key };
      return { kind: "unkeyed" };
    }
    key = parseKey(header) ?? "";
    if (!key) return { kind: "refused", problem: problem("KEY_INVALID"), key };
  }
  const body = await exchange.body(rules.maxRequestBody);
  if (!body) return { kind: "refused", problem: problem("BODY_TOO_LARGE"), key };
  if (!provider) return { kind: "keyed", key, scopes: [scope], body };
  try {
    const verified = await provider.verify(request, body);
    const scopes = webhookScopes(provider.name, verified, scope);
    return { kind: "keyed", key: verified.id, scopes, body };
  } catch (error) {
    const refusal = problemOf(error, rules.webhook);
    if (refusal?.code !== "WEBHOOK_INVALID") throw error;
    return { kind: "refused", problem: refusal, key, error };
  }
}

/**
 * A delivery's scopes: one for each secret that its provider accepts, where the provider has no name of its own. While a
 * secret is rotated, some instances have the old secret, some both, and some the new one: any two that overlap in time
 * share a scope.
 */
function webhookScopes(
  name: string,
  { scope: given = [], secretTags = [] }: VerifiedWebhook,
  own: Scope = [],
): readonly Scope[] {
  const rest = [...given, ...(typeof own === "string" ? [own] : own)];
  // In the same order everywhere: two instances must not hold one scope each and wait for the other.
  const tags = [...new Set(secretTags)].sort();
  return tags.length === 0 ? [[name, ...rest]] : tags.map((tag) => [name, tag, ...rest]);
}

function refuse(rules: ResolvedRules, key: string, refusal: Problem, error?: unknown): HttpAnswer {
  const { status, code } = refusal;
  emit(rules.onEvent, { type: "refused", status, code, key: key || undefined, error });
  return { status: "refused", response: problemResponse(refusal) };
}

/** The options of a run that differ between requests; its scope is added. */
type ResponseRunOptions = Omit<RunOptions<StoredResponse>, "codec"> & {
  readonly codec: Codec<StoredResponse>;
};

/** One request with a key: runs the handler unless a request of the same key has been answered. */
class GuardedRequest {
  readonly #rules: ResolvedRules;
  readonly #exchange: Exchange;
  readonly #keyed: KeyedRequest;
  /** The handler's response. */
  #response: Response | undefined;
  /** The handler's error. */
  #thrown: { readonly error: unknown } | undefined;

  constructor(rules: ResolvedRules, exchange: Exchange, keyed: KeyedRequest) {
    this.#rules = rules;
    this.#exchange = exchange;
    this.#keyed = keyed;
  }

  async answer(): Promise<HttpAnswer> {
    const { request, redlock, deadline, waitUntil: platform } = this.#exchange;
    const waitUntil = this.#rules.runs.waitUntil ?? platform ?? redlock.options.waitUntil;
    const fingerprint = await this.#rules.fingerprint?.(request, this.#keyed.body);
    const options = { fingerprint, codec: responseCodec, deadline, waitUntil };
    // The signal ends the waiting only: once the handler runs, it goes on, and its result is stored, even when the client
    // has gone.
    const work = this.#runInScopes({ ...options, signal: request.signal }, (run) => this.#handle(run));
    // Where the platform stops the code when the client hangs up, this keeps it going.
    runInBackground({ ...redlock.settings, waitUntil }, work);
    try {
      const { value } = await work;
      if (this.#response) return { status: "executed", response: this.#response };
      return { status: "replayed", response: replayResponse(value, request) };
    } catch (error) {
      return this.#answerError(error, options);
    }
  }

  /** Runs the handler, and returns the part of its response that is stored. */
  async #handle(run: RunContext): Promise<StoredResponse> {
    try {
      const { response, failed } = await this.#exchange.handle(run, this.#keyed.body);
      const captured = failed ? { response } : await captureResponse(response, this.#rules);
      this.#response = captured.response;
      if (captured.stored) return captured.stored;
    } catch (error) {
      // Kept apart: a handler that takes locks or runs others may throw this package's errors, too.
      this.#thrown = { error };
      throw error;
    }
    throw notStored;
  }

  async #answerError(error: unknown, options: ResponseRunOptions): Promise<HttpAnswer> {
    const { key } = this.#keyed;
    const { signal } = this.#exchange.request;
    const response = this.#response;
    if (this.#thrown) throw this.#thrown.error;
    if (error === notStored && response) return { status: "failed", response };
    if (signal?.aborted && error === signal.reason) {
      return refuse(this.#rules, key, problem("ABORTED"), error);
    }
    const refusal = problemOf(error, this.#rules.webhook);
    if (!refusal) throw error;
    const answer = await this.#answerInstead(refusal, error, options);
    return answer ?? refuse(this.#rules, key, refusal, error);
  }

  /** The answer in place of a refusal, where there is one. */
  async #answerInstead(
    { code }: Problem,
    error: unknown,
    options: ResponseRunOptions,
  ): Promise<HttpAnswer | undefined> {
    const { request } = this.#exchange;
    if (code === "NO_QUORUM" && this.#rules.failOpen && !this.#response) {
      emit(this.#rules.onEvent, { type: "unguarded", key: this.#keyed.key, error });
      return { status: "unguarded", ...(await this.#exchange.handle(undefined, this.#keyed.body)) };
    }
    // The sender only needs to know that the event was handled, and it was.
    if (code === "RESULT_UNAVAILABLE" && this.#rules.webhook) {
      return { status: "replayed", response: replayResponse(emptySuccess, request) };
    }
    if (code !== "LEASE_LOST" || !this.#response) return undefined;
    // This response is not sent, and must not keep the source of its stream open.
    void this.#response.body?.cancel().catch(() => undefined);
    // The result of the run that took over. Where that has none either, the handler must not run once more.
    const again = this.#runInScopes(options, () => Promise.reject(notStored));
    const winner = await again.catch(() => undefined);
    return winner && { status: "replayed", response: replayResponse(winner.value, request) };
  }

  /**
   * Runs the handler in all scopes, the first outermost: each outer run has the result of the run within it. A key that
   * is complete in any scope does not run again. Only one event is reported, that of the innermost run.
   */
  #runInScopes(
    options: ResponseRunOptions,
    handler: (context: RunContext) => Promise<StoredResponse>,
  ): Promise<Outcome<StoredResponse>> {
    const { key, scopes } = this.#keyed;
    const { runs, onEvent: hook } = this.#rules;
    let isReported = false;
    const onEvent: EventHook<IdempotencyEvent> = (event) => {
      if (isReported) return undefined;
      isReported = true;
      // Returned, because a hook may be asynchronous, and its rejection must be handled.
      return hook?.(event);
    };
    const idempotency = new Idempotency(this.#exchange.redlock, { ...runs, onEvent });
    const enter = (index: number): Promise<Outcome<StoredResponse>> => {
      const isLast = index === scopes.length - 1;
      const scoped = { ...options, scope: scopes[index], kind: "http" };
      return idempotency.run(key, scoped, isLast ? handler : async () => (await enter(index + 1)).value);
    };
    return enter(0);
  }
}
