import { expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import { type HttpEvent, type HttpRules, resolveRules } from "../../../src/http/options.ts";
import { type Exchange, serve } from "../../../src/http/serve.ts";
import { completeText } from "../../../src/idempotency/record.ts";
import { WebhookVerificationError } from "../../../src/webhooks/index.ts";
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

test("what is refused before its key is known has none in its event", async () => {
  const { answer, events } = route({}, true);
  const { answer: answerRequest, events: others } = route({ maxRequestBody: 7 });
  const error = new WebhookVerificationError("acme", "bad-signature", "why");
  await answer(requestOf(""), { provider: { name: "acme", verify: () => Promise.reject(error) } });
  await answerRequest(requestOf('"'));
  await answerRequest(requestOf("k"), { body: async (most) => (most === 7 ? undefined : text("")) });
  expect([...events, ...others]).toEqual([
    { type: "refused", status: 401, code: "WEBHOOK_INVALID", key: undefined, error },
    { type: "refused", status: 400, code: "KEY_INVALID", key: undefined, error: undefined },
    { type: "refused", status: 413, code: "BODY_TOO_LARGE", key: "k", error: undefined },
  ]);
});

test("a webhook begins in the scopes of its secrets in one order everywhere, in each of them once", async () => {
  const { answer, links } = route({}, true);
  const id = freshKey();
  const verify = async () => ({ id, idSigned: true, secretTags: ["b", "a", "b"] });
  expect((await answer(requestOf(""), { provider: { name: "acme", verify } })).status).toBe("executed");
  const begun = links[0]!.sent.map((command) => command[1]);
  expect(begun[0]).toBe(await recordName(id, ["acme", "a"], "http"));
  expect(new Set(begun)).toEqual(new Set([begun[0], await recordName(id, ["acme", "b"], "http")]));
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

test.each([true, false])(
  "a lost run gets the response of the one that took over: own body %s",
  async (hasBody) => {
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
        return { response: new Response(hasBody ? new ReadableStream({ pull, cancel }) : null, { headers }) };
      },
    });
    expect([status, response.status, await response.text()]).toEqual(["replayed", 202, "theirs"]);
    expect(cancelled).toBe(hasBody);
    expect(events.map(({ type }) => type)).toEqual(["lost", "replayed"]);
  },
);

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
