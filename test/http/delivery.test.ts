import { Hono } from "hono";
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import { type IdempotencyVariables, idempotent } from "../../src/hono/index.ts";
import {
  type Delivery,
  type HttpOptions,
  type WebhookOptions,
  withIdempotency,
} from "../../src/http/index.ts";
import type { RunContext } from "../../src/idempotency/index.ts";
import type { VerifiedWebhook, WebhookProvider } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { type Client, clientOf, type OpenStore, recordsOf } from "../support/stores.ts";
import { delivery, everywhere, type Handler, post, provider, slowHandler, stores } from "./stand.ts";

// The verified delivery, on its way to the handler and to the options that are computed from it.

const bytes = (text: string) => new TextEncoder().encode(text);

/** Accepts everything, and returns what it is told to. */
function accepting(verified: Partial<VerifiedWebhook> & object): WebhookProvider & { body?: Uint8Array } {
  const accepts: WebhookProvider & { body?: Uint8Array } = {
    name: "acme",
    async verify(_, body) {
      accepts.body = body;
      return { id: freshKey(), idSigned: true, ...verified };
    },
  };
  return accepts;
}

describe.each(everywhere)("the delivery: %s", (_title, stand, { open }) => {
  let store: OpenStore;
  let client: Client;
  beforeAll(async () => {
    store = await open();
    client = clientOf(store);
  });
  afterAll(() => store.close());

  const serving = (handler: Handler, options: Partial<HttpOptions>) =>
    stand(handler, { redlock: client.redlock, ...options });
  const never: Handler = () => expect.unreachable("the handler must not run");
  const sent = () => client.links.flatMap((link) => link.sent).length;

  test("is what was verified, with the very bytes, and the request's body can be read beside it", async () => {
    const id = freshKey();
    const acme = accepting({ id, scope: ["shop"], timestamp: 7, deliveryId: "d1", idSigned: false });
    const seen: unknown[] = [];
    const fetch = serving(
      async (request, _, given) => {
        seen.push(given, given?.body === acme.body, await request.text());
        return new Response();
      },
      { provider: acme },
    );
    expect((await fetch(delivery(id, { body: "ä{}" }))).status).toBe(200);
    const expected = {
      provider: "acme",
      id,
      scope: ["shop"],
      timestamp: 7,
      deliveryId: "d1",
      idSigned: false,
    };
    expect(seen).toEqual([{ ...expected, body: bytes("ä{}") }, true, "ä{}"]);
  });

  test("of a sender without scope and time has an empty scope and no time", async () => {
    const id = freshKey();
    let given: Delivery | undefined;
    const fetch = serving(
      (_request, _run, it) => {
        given = it;
        return new Response();
      },
      { provider },
    );
    await fetch(delivery(id));
    expect(given).toEqual({
      provider: "github",
      id,
      deliveryId: id,
      idSigned: false,
      scope: [],
      body: bytes('{"zen":"ok"}'),
    });
  });

  test("tells neither tags of secrets, nor a provider or body that verify() makes up", async () => {
    const made = { provider: "other", body: bytes("forged"), event: "e" };
    const acme = accepting({ secretTags: ["a", "b"], ...made });
    const given: (Delivery | undefined)[] = [];
    const fetch = serving(
      (_request, _run, it) => {
        given.push(it);
        return new Response();
      },
      { provider: acme },
    );
    await fetch(delivery(freshKey(), { body: "true" }));
    // Once, although it runs in the scope of two secrets.
    expect(given).toEqual([
      {
        provider: "acme",
        body: bytes("true"),
        event: "e",
        id: expect.any(String),
        idSigned: true,
        scope: [],
      },
    ]);
  });

  test("computes the scope: once, and only after it was verified", async () => {
    const [id, tenant] = [freshKey(), freshKey()];
    let calls = 0;
    const scope = async ({ body }: Delivery) => {
      calls += 1;
      return JSON.parse(new TextDecoder().decode(body)).tenant;
    };
    let runs = 0;
    const fetch = serving(() => new Response(`${++runs}`), {
      provider,
      scope: (given) => scope(given as Delivery),
    });
    for (const [name, run] of [
      [tenant, 1],
      ["b", 2],
      [tenant, 1],
    ] as const) {
      const response = await fetch(delivery(id, { body: JSON.stringify({ tenant: name }) }));
      expect(await response.text()).toBe(`${run}`);
    }
    expect(calls).toBe(3);
    expect((await recordsOf(store, id, ["github", tenant], "http"))[0]).toMatch(/^C1 /);
    const before = sent();
    expect((await fetch(delivery(id, { signedWith: "another secret" }))).status).toBe(401);
    expect([calls, runs, sent()]).toEqual([3, 2, before]);
  });

  test.each([
    ["throws", () => Promise.reject(new RangeError("no tenant"))],
    ["is empty", () => ""],
    ["has an absent part", async () => ["a", undefined as unknown as string]],
  ])("a scope that %s: an error, no handler, no request", async (_what, scope) => {
    const before = sent();
    const fetch = serving(never, { provider, scope });
    const { error, value } = await outcomeOf(fetch(delivery(freshKey())));
    // Hono answers its handlers' errors itself.
    expect(error === undefined ? value?.status : error).toEqual(
      error === undefined ? 500 : expect.any(Error),
    );
    expect(sent()).toBe(before);
  });

  test("is absent without a provider: with a key, without one, and with failOpen", async () => {
    const given: unknown[] = [];
    const handler: Handler = (_request, _run, it) => {
      given.push(it);
      return new Response();
    };
    const scope = (it: Delivery | undefined) => {
      given.push(it ?? "scope");
      return "tenant";
    };
    await serving(handler, { scope })(post());
    await serving(handler, { scope, required: false })(post(null));
    const cut = clientOf(store);
    for (const link of cut.links) link.fate = () => "refused";
    await stand(handler, { redlock: cut.redlock, scope, failOpen: true })(post());
    expect(given).toEqual(["scope", undefined, undefined, "scope", undefined]);
  });
});

describe("in Hono", () => {
  let store: OpenStore;
  let client: Client;
  beforeAll(async () => {
    store = await stores[0]!.open();
    client = clientOf(store);
  });
  afterAll(() => store.close());

  test("middleware further out knows the delivery of a duplicate, of a busy one, and of none that is forged", async () => {
    const id = freshKey();
    const seen: unknown[] = [];
    const app = new Hono<{ Variables: IdempotencyVariables }>();
    app.use(async (c, next) => {
      await next();
      seen.push([c.res.status, c.var.webhook?.id]);
    });
    const slow = slowHandler();
    const { redlock } = client;
    app.post("/hook", idempotent({ redlock, provider, wait: 0 }), (c) =>
      slow.handler(c.req.raw, c.var.idempotency),
    );
    const first = app.fetch(delivery(id));
    await slow.started.passed;
    await app.fetch(delivery(id));
    slow.finish(new Response("done"));
    await first;
    await app.fetch(delivery(id));
    await app.fetch(delivery(id, { signedWith: "another secret" }));
    expect(seen).toEqual([
      [503, id],
      [200, id],
      [200, id],
      [401, undefined],
    ]);
  });

  test("a provider that is missing for one request lets nothing in, not even with a key", async () => {
    const { redlock } = client;
    const options = { redlock, provider: () => undefined as unknown as WebhookProvider };
    const app = new Hono().post("*", idempotent(options), () => expect.unreachable("it is not verified"));
    app.onError((error, c) => c.text(error.message, 500));
    const response = await app.fetch(post(freshKey()));
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining("provider")]);
  });

  test("without a provider a scope may read the body before the handler does", async () => {
    const { redlock } = client;
    const app = new Hono().post(
      "*",
      idempotent({ redlock, scope: async (c) => (await c.req.json()).tenant }),
      async (c) => c.text(await c.req.text()),
    );
    const response = await app.fetch(post(freshKey(), { body: '{"tenant":"t"}' }));
    expect(await response.text()).toBe('{"tenant":"t"}');
  });
});

// Checked by the compiler; the handlers do not run.
test("types: with a provider there is a delivery, and always a run", () => {
  const { redlock } = { redlock: undefined as unknown as HttpOptions["redlock"] };
  const request = post();
  const calls = () => {
    withIdempotency(
      request,
      (_request, run, given) => {
        expectTypeOf(run).toEqualTypeOf<RunContext>();
        expectTypeOf(given).toEqualTypeOf<Delivery>();
        return new Response(given.id);
      },
      {
        redlock,
        provider,
        scope(given) {
          expectTypeOf(given).toEqualTypeOf<Delivery>();
          return given.id;
        },
      },
    );
    withIdempotency(
      request,
      (_request, run, given) => {
        expectTypeOf(run).toEqualTypeOf<RunContext | undefined>();
        expectTypeOf(given).toEqualTypeOf<Delivery | undefined>();
        // @ts-expect-error it may be missing
        return new Response(given.id);
      },
      { redlock, scope: "tenant" },
    );
    // @ts-expect-error without a provider there may be none
    withIdempotency(request, () => new Response(), { redlock, scope: (given) => given.id });
    const options: WebhookOptions = { redlock, provider };
    withIdempotency(request, (_request, _run, given) => new Response(given.id), options);
  };
  expect(calls).toBeTypeOf("function");
});
