import { isRedlockError } from "../errors.ts";
import { emit } from "../events.ts";
import { Idempotency, type RunContext, type RunOptions } from "../idempotency/index.ts";
import { handOver, type WaitUntil } from "../options.ts";
import type { Redlock } from "../redlock.ts";
import type { WebhookProvider } from "../webhooks/index.ts";
import { parseKey } from "./key.ts";
import type { SettledRules } from "./options.ts";
import { type Problem, problem, problemOf, problemResponse } from "./problem.ts";
import { keep, replayed, responseCodec, type StoredResponse } from "./stored.ts";

/** One request, and what is to be done with it. */
export interface Exchange {
  readonly request: Request;
  readonly redlock: Redlock;
  readonly provider: WebhookProvider | undefined;
  readonly scope: string | readonly string[];
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
 * How a request was answered. `executed`: by the handler, and that is stored. `failed`: by the handler, and the key
 * is free. `replayed`: with a stored response. `refused`: with a problem. `unguarded`: by the handler, which nothing
 * protected: there was no key, or with `failOpen` no store.
 */
export interface Served {
  readonly status: "executed" | "failed" | "replayed" | "refused" | "unguarded";
  readonly response: Response;
}

/** Thrown out of a run whose response is not to be stored, so that its key is free again. */
const notStored = new Error("the response is not stored");

/** Answers a request: once by the handler, and after that with what the handler answered. */
export async function serve(rules: SettledRules, exchange: Exchange): Promise<Served> {
  const { request, redlock, provider, deadline } = exchange;
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
  let { scope } = exchange;
  if (provider) {
    try {
      const verified = await provider.verify(request, body);
      key = verified.id;
      scope = [provider.name, ...(verified.scope ?? []), ...(typeof scope === "string" ? [scope] : scope)];
    } catch (error) {
      const refusal = problemOf(error, webhook);
      if (refusal?.code !== "WEBHOOK_INVALID") throw error;
      return refuse(refusal, error);
    }
  }

  const { signal } = request;
  const waitUntil = rules.runs.waitUntil ?? exchange.waitUntil ?? redlock.options.waitUntil;
  const idempotency = new Idempotency(redlock, rules.runs);
  const options: RunOptions<StoredResponse> = {
    scope,
    fingerprint: await rules.fingerprint?.(request, body),
    codec: responseCodec,
    deadline,
    waitUntil,
  };
  let answer: Response | undefined;
  let thrown: { readonly error: unknown } | undefined;
  // The signal ends nothing but the waiting: once the handler runs, it goes on, and its result is stored, whether
  // or not the client is still there.
  const work = idempotency.run(key, { ...options, signal }, async (run) => {
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
  handOver(
    { ...redlock.settings, waitUntil },
    work.catch(() => undefined),
  );
  try {
    const { status, value } = await work;
    return { status, response: status === "executed" && answer ? answer : replayed(value, request) };
  } catch (error) {
    if (thrown) throw thrown.error;
    if (error === notStored && answer) return { status: "failed", response: answer };
    if (signal?.aborted && error === signal.reason) return refuse(problem("ABORTED"), error);
    const refusal = problemOf(error, webhook);
    if (!refusal) throw error;
    if (refusal.code === "NO_QUORUM" && rules.failOpen && !answer) {
      emit(rules.onEvent, { type: "unguarded", key, error });
      return { status: "unguarded", ...(await exchange.handle(undefined, body)) };
    }
    if (answer && isRedlockError(error) && error.code === "LEASE_LOST") {
      // It answers nobody, and must not hold on to what it streams from.
      void answer.body?.cancel().catch(() => undefined);
      // What the one that took over came to; where that came to nothing either, this must not run once more.
      const winner = await idempotency
        .run(key, options, () => Promise.reject(notStored))
        .catch(() => undefined);
      if (winner) return { status: "replayed", response: replayed(winner.value, request) };
    }
    return refuse(refusal, error);
  }
}
