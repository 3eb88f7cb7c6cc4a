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
import { keep, replayed, responseCodec, type StoredResponse } from "./stored.ts";

/** One request, and what is to be done with it. */
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
   * Runs the handler; without a `run`: unprotected, and without a `body`: as if it had not been looked at.
   * `failed`: it threw, and the response is what became of that.
   */
  handle(
    run?: RunContext,
    body?: Uint8Array,
  ): Promise<{ readonly response: Response; readonly failed?: boolean }>;
}

/**
 * How a request was answered. `executed`: by the handler, and the key is complete, or about to be. `failed`: by the handler, and the key
 * is free. `replayed`: with a stored response. `refused`: with a problem. `unguarded`: by the handler, which nothing
 * protected: there was no key, or with `failOpen` no store.
 */
export interface Served {
  readonly status: "executed" | "failed" | "replayed" | "refused" | "unguarded";
  readonly response: Response;
}

/** Thrown out of a run whose response is not to be stored, so that its key is free again. */
const notStored = new Error("the response is not stored");

/** Stands for a response that was not stored. */
const handled: StoredResponse = { status: 200, headers: {}, body: undefined };

type Scope = string | readonly string[];

/** A request that has a key, and what of it is known. */
interface KeyedRequest {
  readonly key: string;
  /** Scopes in each of which the key is to run once; mostly one. */
  readonly scopes: readonly (Scope | undefined)[];
  readonly body: Uint8Array;
  refuse(what: Problem, error?: unknown): Served;
}

/** Answers a request: once by the handler, and after that with what the handler answered. */
export async function serve(rules: ResolvedRules, exchange: Exchange): Promise<Served> {
  const { request, provider, scope } = exchange;
  const { webhook } = rules;
  let key = "";
  const refuse = (what: Problem, error?: unknown): Served => {
    const { status, code } = what;
    emit(rules.onEvent, { type: "refused", status, code, key: key || undefined, error });
    return { status: "refused", response: problemResponse(what) };
  };

  if (!webhook) {
    const header = request.headers.get(rules.header);
    if (header === null) {
      const safe = /^(GET|HEAD|OPTIONS|TRACE)$/.test(request.method);
      if (rules.required && !safe) return refuse(problem("KEY_MISSING"));
      return { status: "unguarded", ...(await exchange.handle()) };
    }
    key = parseKey(header) ?? "";
    if (!key) return refuse(problem("KEY_INVALID"));
  }
  const body = await exchange.body(rules.maxRequestBody);
  if (!body) return refuse(problem("BODY_TOO_LARGE"));
  if (!provider) return answerOnce(rules, exchange, { key, scopes: [scope], body, refuse });
  let verified: VerifiedWebhook;
  try {
    verified = await provider.verify(request, body);
  } catch (error) {
    const refusal = problemOf(error, webhook);
    if (refusal?.code !== "WEBHOOK_INVALID") throw error;
    return refuse(refusal, error);
  }
  key = verified.id;
  return answerOnce(rules, exchange, {
    key,
    scopes: webhookScopes(provider.name, verified, scope),
    body,
    refuse,
  });
}

/**
 * A delivery's scopes: one for each secret that its provider accepts, where it has no name of its own. While a
 * secret is rotated, instances with the old one alone, with both, and with the new one alone then meet in a scope.
 */
function webhookScopes(
  name: string,
  { scope: given = [], secretTags = [] }: VerifiedWebhook,
  own: Scope = [],
): readonly Scope[] {
  const rest = [...given, ...(typeof own === "string" ? [own] : own)];
  // In one order everywhere: two instances must not hold a scope each and wait for the other's.
  const tags = [...new Set(secretTags)].sort();
  return tags.length === 0 ? [[name, ...rest]] : tags.map((tag) => [name, tag, ...rest]);
}

/** Runs the handler unless a request of the same key has been answered. */
async function answerOnce(
  rules: ResolvedRules,
  exchange: Exchange,
  { key, scopes, body, refuse }: KeyedRequest,
): Promise<Served> {
  const { request, redlock, deadline } = exchange;
  const waitUntil = rules.runs.waitUntil ?? exchange.waitUntil ?? redlock.options.waitUntil;
  const fingerprint = await rules.fingerprint?.(request, body);
  const options = { fingerprint, codec: responseCodec, deadline, waitUntil };
  let answer: Response | undefined;
  let thrown: { readonly error: unknown } | undefined;
  const { signal } = request;
  // The signal ends nothing but the waiting: once the handler runs, it goes on, and its result is stored, whether
  // or not the client is still there.
  const work = runInScopes(rules, redlock, { key, scopes, options: { ...options, signal } }, async (run) => {
    try {
      const { response, failed } = await exchange.handle(run, body);
      const kept = failed ? { response } : await keep(response, rules);
      answer = kept.response;
      if (kept.stored) return kept.stored;
    } catch (error) {
      // The handler's own errors look like ours when it takes locks or runs others.
      thrown = { error };
      throw error;
    }
    throw notStored;
  });
  // Where the platform stops the code when the client hangs up, this keeps it going.
  runInBackground({ ...redlock.settings, waitUntil }, work);
  try {
    const { value } = await work;
    if (answer) return { status: "executed", response: answer };
    return { status: "replayed", response: replayed(value, request) };
  } catch (error) {
    if (thrown) throw thrown.error;
    if (error === notStored && answer) return { status: "failed", response: answer };
    if (signal?.aborted && error === signal.reason) return refuse(problem("ABORTED"), error);
    const refusal = problemOf(error, rules.webhook);
    if (!refusal) throw error;
    if (refusal.code === "NO_QUORUM" && rules.failOpen && !answer) {
      emit(rules.onEvent, { type: "unguarded", key, error });
      return { status: "unguarded", ...(await exchange.handle(undefined, body)) };
    }
    // Its sender asks for no more than whether the event was handled, and it was.
    if (refusal.code === "RESULT_UNAVAILABLE" && rules.webhook) {
      return { status: "replayed", response: replayed(handled, request) };
    }
    if (answer && refusal.code === "LEASE_LOST") {
      // It answers nobody, and must not hold on to what it streams from.
      void answer.body?.cancel().catch(() => undefined);
      // The result of the run that took over; where it has none either, this must not run once more.
      const again = runInScopes(rules, redlock, { key, scopes, options }, () => Promise.reject(notStored));
      const winner = await again.catch(() => undefined);
      if (winner) return { status: "replayed", response: replayed(winner.value, request) };
    }
    return refuse(refusal, error);
  }
}

/**
 * Runs the handler in all scopes, the first outermost: it has the result of the one within it. What is complete
 * in any of them is not run again. One event is told, the innermost that there is.
 */
function runInScopes(
  rules: ResolvedRules,
  redlock: Redlock,
  run: Pick<KeyedRequest, "key" | "scopes"> & {
    readonly options: Omit<RunOptions<StoredResponse>, "codec"> & { readonly codec: Codec<StoredResponse> };
  },
  handler: (context: RunContext) => Promise<StoredResponse>,
): Promise<Outcome<StoredResponse>> {
  let told = false;
  const onEvent: EventHook<IdempotencyEvent> = (event) => {
    if (told) return undefined;
    told = true;
    // Returned, because a hook may be asynchronous, and its failure must not go unhandled.
    return rules.onEvent?.(event);
  };
  const idempotency = new Idempotency(redlock, { ...rules.runs, onEvent });
  const enter = (index: number): Promise<Outcome<StoredResponse>> => {
    const isLast = index === run.scopes.length - 1;
    const options = { ...run.options, scope: run.scopes[index], kind: "http" };
    return idempotency.run(run.key, options, isLast ? handler : async () => (await enter(index + 1)).value);
  };
  return enter(0);
}
