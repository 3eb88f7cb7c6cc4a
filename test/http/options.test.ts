import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { idempotent } from "../../src/hono/index.ts";
import { type HttpRules, withIdempotency } from "../../src/http/index.ts";
import { Redlock } from "../../src/index.ts";
import { idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import { stripe } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { steppingRuntime } from "../support/stepping-runtime.ts";
import { delivery, plainStand, post, provider, slowHandler } from "./stand.ts";

const redlock = new Redlock({ endpoints: [memoryEndpoint()] });

describe("wrong options are refused at set-up", () => {
  const cases: [what: string, options: object | null | undefined, type: new () => Error, message: RegExp][] =
    [
      ["none", undefined, TypeError, /options.*missing/],
      ["null", null, TypeError, /options.*null/],
      ["no client", {}, TypeError, /redlock/],
      ["a client that is none", { redlock: { acquire: 1 } }, TypeError, /redlock/],
      ["a provider that is none", { redlock, provider: {} }, TypeError, /provider/],
      ["no header's name", { redlock, header: "no name" }, TypeError, /header.*no name/],
      ["a handler that is a function", { redlock, handler: () => "a" }, TypeError, /handler.*function/],
      ["a handler without a character", { redlock, handler: "" }, RangeError, /handler.*""/],
      ["a handler with a wildcard", { redlock, handler: "/hooks/*" }, RangeError, /handler.*hooks/],
      ["a header that is not a text", { redlock, header: 7 }, TypeError, /header.*number/],
      ["required", { redlock, required: "yes" }, TypeError, /required.*yes/],
      ["failOpen", { redlock, failOpen: 1 }, TypeError, /failOpen.*number/],
      ["fingerprint", { redlock, fingerprint: "body" }, TypeError, /fingerprint.*body/],
      ["store", { redlock, store: [200] }, TypeError, /store/],
      ["onEvent", { redlock, onEvent: "log" }, TypeError, /onEvent.*log/],
      ["maxResult", { redlock, maxResult: 10 }, RangeError, /maxResult.*10/],
      ["a misspelt option", { redlock, retension: 1 }, TypeError, /"retension"; did you mean retention\?/],
      [
        "a lock's option",
        { redlock, ttl: 1_000 },
        TypeError,
        /: (idempotent|idempotentExpress|idempotentFastify|withIdempotency) has no option "ttl"/,
      ],
      ["lease", { redlock, lease: 5 }, RangeError, /5/],
      [
        "wait without an end for webhooks",
        { redlock, provider, wait: Infinity },
        RangeError,
        /wait.*Infinity/,
      ],
      ["waitUntil", { redlock, waitUntil: {} }, TypeError, /waitUntil/],
      ["omitHeaders", { redlock, omitHeaders: [7] }, TypeError, /omitHeaders.*number/],
      ["omitHeaders that are none", { redlock, omitHeaders: ["no name"] }, TypeError, /omitHeaders.*no name/],
      ["maxRequestBody", { redlock, maxRequestBody: 2 ** 31 + 1 }, RangeError, /maxRequestBody/],
      ["half a byte", { redlock, maxRequestBody: 0.5 }, RangeError, /maxRequestBody/],
      ["maxResponseBody", { redlock, maxResponseBody: 483_617 }, RangeError, /maxResponseBody/],
      ["a negative one", { redlock, maxResponseBody: -1 }, RangeError, /maxResponseBody/],
      [
        "one above half of maxResult",
        { redlock, maxResponseBody: 2, maxResult: 32_770 },
        RangeError,
        /maxResponseBody/,
      ],
      ["failOpen for webhooks", { redlock, provider, failOpen: true }, RangeError, /failOpen/],
      ["a short retention", { redlock, retention: 20_000, lease: 30_000 }, RangeError, /retention/],
      [
        "a retention in seconds, which is over before the sender's last retry",
        { redlock, provider: stripe({ secret: "whsec_1" }), retention: 604_800 },
        RangeError,
        /retention is 604_800 ms, and stripe retries .* 259_200_000 ms: .*; did you mean 604_800_000\?$/,
      ],
      [
        "one that is too short as it is",
        { redlock, provider: stripe({ secret: "whsec_1" }), retention: 3_600_000 },
        RangeError,
        /retention is 3_600_000 ms, and stripe retries .* would run again$/,
      ],
      [
        "one that is too short in seconds, too",
        { redlock, provider: stripe({ secret: "whsec_1" }), retention: 86_400 },
        RangeError,
        /259_200_000 ms: a retry after the retention would run again$/,
      ],
      ["an empty scope", { redlock, scope: [] }, TypeError, /scope/],
      ["an empty lock", { redlock, lock: "" }, RangeError, /lock/],
    ];

  test.each(cases)("%s", async (_what, options, type, message) => {
    const handler = () => expect.unreachable("nothing may run");
    const calls: readonly (() => unknown)[] = [
      () => idempotent(options as never),
      () => idempotentExpress(options as never),
      () => idempotentFastify(options as never),
      () => withIdempotency(post(), handler, options as never),
    ];
    for (const fails of calls) {
      const { error } = await outcomeOf<unknown>(Promise.resolve().then(fails));
      expect(error).toBeInstanceOf(type);
      expect(String(error)).toMatch(message);
    }
  });

  test.each<[HttpRules, webhook?: boolean]>([
    [{ maxRequestBody: 2 ** 31 }],
    [{ maxResponseBody: 0 }],
    [{ maxResponseBody: 483_616 }],
    [{ maxResponseBody: 1, maxResult: 32_770 }],
    [{ maxResult: 1_000 }],
    [{ wait: 60_001 }],
    [{ wait: 60_000 }, true],
    [{ wait: 0 }, true],
    [{ retention: 30_000 }, true],
  ])("but not what is just within the bounds: %j", (options, webhook = false) => {
    expect(() => idempotent({ redlock, ...options, ...(webhook && { provider }) })).not.toThrow();
  });

  test.each([[Promise.resolve(false)], [undefined], [0]])("%s is no result of store", async (result) => {
    const wrong = withIdempotency(post(freshKey()), () => new Response(), {
      redlock,
      store: () => result as never,
    });
    await expect(wrong).rejects.toThrow(/^the result of store .*a boolean/);
  });

  test("they are checked even where the client is made for each request", () => {
    expect(() => idempotent({ redlock: () => redlock, lease: 5 })).toThrow(RangeError);
  });

  test("a short retention is refused where the provider is made for each request, and before a handler runs", async () => {
    const app = new Hono();
    app.onError((error) => Response.json(error.message, { status: 500 }));
    const rules = { redlock, retention: 604_800, provider: () => stripe({ secret: "whsec_1" }) };
    app.post("*", idempotent(rules), () => expect.unreachable("nothing may run"));
    const response = await app.fetch(post());
    expect([response.status, await response.json()]).toEqual([
      500,
      expect.stringMatching(/did you mean 604_800_000/),
    ]);
  });

  test("withIdempotency checks them before it reads the body", async () => {
    const request = post();
    const wrong = withIdempotency(request, () => new Response(), { redlock, provider: {} as never });
    await expect(wrong).rejects.toThrow(/provider/);
    expect(request.bodyUsed).toBe(false);
  });

  test("withIdempotency needs a handler, and a scope of texts", async () => {
    await expect(withIdempotency(post(), undefined as never, { redlock })).rejects.toThrow(/handler/);
    const scope = ["tenant", undefined] as never;
    await expect(withIdempotency(post(), () => new Response(), { redlock, scope })).rejects.toThrow(/scope/);
    await expect(withIdempotency(post(), () => "text" as never, { redlock })).rejects.toThrow(
      /Response.*"text"/,
    );
  });
});

test.each([
  ["a request", 0, {}, post],
  ["a delivery", 2_000, { provider }, () => delivery("d")],
])("a duplicate of %s waits for %i ms by default", async (_what, wait, options, request) => {
  const runtime = steppingRuntime();
  const redlock = new Redlock({ endpoints: [memoryEndpoint({ runtime })], runtime });
  const { handler, started, finish } = slowHandler();
  const answer = () => plainStand(handler, { redlock, ...options })(request("k"));
  const first = answer();
  await started.passed;
  const began = runtime.now();
  let hasEnded = false;
  const second = answer().finally(() => {
    hasEnded = true;
  });
  // Without waiting no time has to pass.
  while (wait > 0 && !hasEnded) await runtime.advance(10);
  expect((await second).status).toBe(wait === 0 ? 409 : 503);
  expect(runtime.now() - began).toBeGreaterThanOrEqual(wait);
  finish(new Response());
  await first;
});

test.each([
  ["before it has read its request", new TypeError("cannot pay twice"), false],
  ["after it has read its request", new TypeError("the payment is locked already"), true],
  ["of another class", new Error("the payment is locked already"), false],
])("an error of the handler is thrown as it is: %s", async (_what, thrown, reads) => {
  const handler = async (request: Request) => {
    if (reads) await request.text();
    throw thrown;
  };
  const { error } = await outcomeOf(withIdempotency(post(freshKey()), handler, { redlock }));
  expect(error).toBe(thrown);
});
