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
  const hook = { redlock, provider };
  const ofStripe = { redlock, provider: stripe({ secret: "whsec_1" }) };
  /** What is wrong, and the options. */
  const mistakes: Readonly<Record<string, object | null | undefined>> = {
    none: undefined,
    "no client": {},
    "a client that is none": { redlock: { acquire: 1 } },
    "a provider that is none": { redlock, provider: {} },
    "no header's name": { redlock, header: "no name" },
    "a handler without a character": { redlock, handler: "" },
    "a handler with a wildcard": { redlock, handler: "/hooks/*" },
    "a header that is not a text": { redlock, header: 7 },
    required: { redlock, required: "yes" },
    failOpen: { redlock, failOpen: 1 },
    fingerprint: { redlock, fingerprint: "body" },
    store: { redlock, store: [200] },
    onEvent: { redlock, onEvent: "log" },
    maxResult: { redlock, maxResult: 10 },
    "a misspelt option": { redlock, retension: 1 },
    "a lock's option": { redlock, ttl: 1_000 },
    lease: { redlock, lease: 5 },
    "wait without an end for webhooks": { ...hook, wait: Infinity },
    waitUntil: { redlock, waitUntil: {} },
    omitHeaders: { redlock, omitHeaders: [7] },
    "omitHeaders that are none": { redlock, omitHeaders: ["no name"] },
    maxRequestBody: { redlock, maxRequestBody: 2 ** 31 + 1 },
    maxResponseBody: { redlock, maxResponseBody: 483_617 },
    "one above half of maxResult": { redlock, maxResponseBody: 2, maxResult: 32_770 },
    "failOpen for webhooks": { ...hook, failOpen: true },
    "a short retention": { redlock, retention: 20_000, lease: 30_000 },
    "a retention in seconds, which is over before the sender's last retry": {
      ...ofStripe,
      retention: 604_800,
    },
    "one that is too short in seconds, too": { ...ofStripe, retention: 86_400 },
    "an empty scope": { redlock, scope: [] },
    "an empty lock": { redlock, lock: "" },
  };

  test("with the error that is in options.txt", async () => {
    const handler = () => expect.unreachable("nothing may run");
    const calls: Readonly<Record<string, (options: never) => unknown>> = {
      idempotent,
      idempotentExpress,
      idempotentFastify,
      withIdempotency: (options) => withIdempotency(post(), handler, options),
    };
    const lines: string[] = [];
    for (const [what, options] of Object.entries(mistakes)) {
      const errors = new Set<string>();
      for (const [name, call] of Object.entries(calls)) {
        const { error } = await outcomeOf<unknown>(Promise.resolve().then(() => call(options as never)));
        errors.add(String(error).replace(new RegExp(`\\b${name} (?=has|needs)`), "… "));
      }
      lines.push(what, ...Array.from(errors, (error) => `    ${error}`));
    }
    await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("options.txt");
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

  test("a short retention is refused where the provider is made for each request, and before a handler runs", async () => {
    const app = new Hono().onError((error) => Response.json(error.message, { status: 500 }));
    const rules = { redlock, retention: 604_800, provider: () => stripe({ secret: "whsec_1" }) };
    app.post("*", idempotent(rules), () => expect.unreachable("nothing may run"));
    const answer = await app.fetch(post());
    expect([answer.status, await answer.json()]).toEqual([500, expect.stringMatching(/mean 604_800_000/)]);
  });

  test("withIdempotency checks them before it reads the body", async () => {
    const request = post();
    const wrong = withIdempotency(request, () => new Response(), { redlock, provider: {} as never });
    await expect(wrong).rejects.toThrow(/provider/);
    expect(request.bodyUsed).toBe(false);
  });

  test("withIdempotency needs a handler, and its response", async () => {
    await expect(withIdempotency(post(), undefined as never, { redlock })).rejects.toThrow(
      /handler .*must be a function/,
    );
    const text = withIdempotency(post(), () => "text" as never, { redlock });
    await expect(text).rejects.toThrow(/Response.*"text"/);
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

test("an error of the handler is thrown as it is, although it sounds like one about the body", async () => {
  const thrown = new TypeError("the payment is locked already");
  const handler = async (request: Request) => {
    await request.text();
    throw thrown;
  };
  expect((await outcomeOf(withIdempotency(post(freshKey()), handler, { redlock }))).error).toBe(thrown);
});
