import { expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import { type HttpEvent, type HttpRules, resolveRules } from "../../../src/http/options.ts";
import { type Exchange, serve } from "../../../src/http/serve.ts";
import { completeText } from "../../../src/idempotency/record.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { allArrived, clientOf, recordName, storeOf } from "../../support/stores.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

// What no request to a server shows of serve(); test/http has those.

forbidUnhandledRejections();

const store = await storeOf({ engine: "embedded", count: 3, dialect: "upstash" }).open();
const text = (value: string) => new TextEncoder().encode(value);
const requestOf = (key: string, init: RequestInit = {}) =>
  new Request("https://a.example/p", { method: "POST", headers: { "idempotency-key": key }, ...init });

/** A route, and what has happened there, without the beginnings of runs. */
function route(
  options: HttpRules = {},
  webhook = false,
  redlockOptions: Parameters<typeof clientOf>[2] = {},
) {
  const events: HttpEvent[] = [];
  const onEvent = (event: HttpEvent) => event.type !== "called" && events.push(event);
  const rules = resolveRules("withIdempotency", { timeout: 10_000, onEvent, ...options }, webhook);
  const { redlock, links } = clientOf(store, {}, redlockOptions);
  const answer = (request: Request, exchange: Partial<Exchange> = {}) =>
    serve(rules, {
      request,
      redlock,
      provider: undefined,
      deadline: undefined,
      waitUntil: undefined,
      admitted: async () => ({ scope: undefined }),
      body: async () => text("body"),
      handle: async () => ({ response: new Response() }),
      ...exchange,
    });
  return { answer, events, links };
}

test("a request is refused while another of its key is handled, also with failOpen", async () => {
  const { answer, events } = route({ failOpen: true });
  const key = freshKey();
  await answer(requestOf(key), {
    handle: async () => {
      const { status, response } = await answer(requestOf(key));
      expect([status, response.status]).toEqual(["refused", 409]);
      return { response: new Response() };
    },
  });
  expect(events).toMatchObject([
    { type: "busy" },
    { type: "refused", status: 409, code: "IN_PROGRESS", key, error: { code: "IN_PROGRESS" } },
    { type: "executed" },
  ]);
});

test("an error that is none of this package's is thrown", async () => {
  const error = new Error("no such fingerprint");
  const { answer } = route({ fingerprint: () => Promise.reject(error) });
  expect((await outcomeOf(answer(requestOf(freshKey())))).error).toBe(error);
  const backoff = () => {
    throw error;
  };
  const waiting = route({ wait: 1_000, backoff });
  const key = freshKey();
  await waiting.answer(requestOf(key), {
    handle: async () => {
      expect((await outcomeOf(waiting.answer(requestOf(key)))).error).toBe(error);
      return { response: new Response() };
    },
  });
});

test.each([new Error("the provider's own"), new QuorumError("read", ["r"], [])])(
  "a webhook whose provider fails in another way is not answered: %s",
  async (error) => {
    const provider = { name: "acme", verify: () => Promise.reject(error) };
    const answered = route({}, true).answer(requestOf(freshKey()), { provider });
    expect((await outcomeOf(answered)).error).toBe(error);
  },
);

test("a client that has gone is refused, for whatever reason", async () => {
  const { answer, events } = route();
  const reason = new Error("its own");
  const { status, response } = await answer(requestOf(freshKey(), { signal: AbortSignal.abort(reason) }));
  expect([status, response.status]).toEqual(["refused", 499]);
  expect(events).toMatchObject([
    { type: "aborted", error: reason },
    { type: "refused", code: "ABORTED", error: reason },
  ]);
});

test("a request without a signal, as on some platforms, is refused in an outage", async () => {
  const { answer, links } = route();
  for (const link of links) link.fate = () => "refused";
  const request = Object.defineProperty(requestOf(freshKey()), "signal", { value: undefined });
  expect((await answer(request)).response.status).toBe(503);
});

test("a run that was lost gets the response of the one that took over, and its own is given up", async () => {
  const { answer, events, links } = route({ wait: 0 });
  const key = freshKey();
  let cancelled = false;
  const { status, response } = await answer(requestOf(key), {
    handle: async () => {
      await allArrived(links);
      const fields = { token: "tother", fingerprint: "-", completedAt: Date.now() };
      const taken = completeText({ ...fields, result: "t202{}\ntheirs" });
      const name = await recordName(key, [], "http");
      for (let index = 0; index < 3; index += 1) await store.execute(index, ["SET", name, taken]);
      const cancel = () => {
        cancelled = true;
        throw new Error("the source's own");
      };
      const pull = (controller: ReadableStreamDefaultController) => controller.enqueue(text("mine"));
      const headers = { "content-type": "text/event-stream" };
      return { response: new Response(new ReadableStream({ pull, cancel }), { headers }) };
    },
  });
  expect([status, response.status, await response.text()]).toEqual(["replayed", 202, "theirs"]);
  expect(cancelled).toBe(true);
  expect(events.map(({ type }) => type)).toEqual(["lost", "replayed"]);
});

test.each([
  [["rules", "exchange", "client"], "rules"],
  [["exchange", "client"], "exchange"],
  [["client"], "client"],
])("waitUntil of %j is that of the %s", async (present, expected) => {
  const kept: string[] = [];
  const keeping = (name: string) => (present.includes(name) ? () => void kept.push(name) : undefined);
  const { answer } = route({ waitUntil: keeping("rules") }, false, { waitUntil: keeping("client") });
  await answer(requestOf(freshKey()), { waitUntil: keeping("exchange") });
  expect(new Set(kept)).toEqual(new Set([expected]));
});
