import { type HttpEvent, type HttpRules, resolveRules } from "../../../src/http/options.ts";
import { type Exchange, serve } from "../../../src/http/serve.ts";
import type { VerifiedWebhook, WebhookProvider } from "../../../src/webhooks/index.ts";
import { clientOf, type OpenStore, storeOf } from "../../support/stores.ts";

// A route over serve() alone, on endpoints in this process.

/** Three endpoints in this process. */
export const store: OpenStore = await storeOf({ engine: "embedded", count: 3, dialect: "upstash" }).open();

export const text = (value: string) => new TextEncoder().encode(value);
export const requestOf = (key: string | null, init: RequestInit = {}) =>
  new Request("https://a.example/p", {
    method: "POST",
    headers: key === null ? {} : { "idempotency-key": key },
    ...init,
  });

/** A route, and what has happened there. */
export function route(
  options: HttpRules = {},
  webhook = false,
  redlockOptions: Parameters<typeof clientOf>[2] = {},
) {
  /** Without the beginnings of runs. */
  const events: HttpEvent[] = [];
  const onEvent = (event: HttpEvent) => {
    if (event.type !== "called") events.push(event);
  };
  const rules = resolveRules("withIdempotency", { onEvent, ...options }, webhook);
  const { redlock, links } = clientOf(store, {}, redlockOptions);
  let runs = 0;
  const answer = (request: Request, exchange: Partial<Exchange> = {}) =>
    serve(rules, {
      request,
      redlock,
      provider: undefined,
      deadline: undefined,
      waitUntil: undefined,
      admitted: async () => ({ scope: undefined }),
      body: async () => text("body"),
      handle: async () => ({ response: new Response(`run ${++runs}`) }),
      ...exchange,
    });
  return { answer, events, links, redlock, runs: () => runs };
}

export const providerOf = (verified: Partial<VerifiedWebhook>): WebhookProvider => ({
  name: "acme",
  verify: async () => ({ id: "id", idSigned: true, ...verified }),
});
export const types = (events: readonly HttpEvent[]) => events.map(({ type }) => type);
export const silence = (links: ReturnType<typeof route>["links"]) => {
  for (const link of links) link.fate = () => "refused";
};
