import { Hono } from "hono";
import { describe, expect, test } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import type { Delivery, HttpOptions } from "../../src/http/index.ts";
import type { VerifiedWebhook, WebhookProvider } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { recordsOf } from "../support/stores.ts";
import { delivery, everywhere, type Handler, opened, post, provider } from "./stand.ts";

// The verified delivery, on its way to the handler and to the options that are computed from it.

const bytes = (text: string) => new TextEncoder().encode(text);

/** Accepts everything, and returns what it is told to. */
const accepting = (verified: Partial<VerifiedWebhook> & object): WebhookProvider => ({
  name: "acme",
  verify: async () => ({ id: freshKey(), idSigned: true, ...verified }),
});

describe.each(everywhere)("the delivery: %s", (_title, stand, { open }) => {
  const at = opened({ open });

  const serving = (handler: Handler, options: Partial<HttpOptions>) =>
    stand(handler, { redlock: at.client.redlock, ...options });
  const never: Handler = () => expect.unreachable("the handler must not run");
  const sent = () => at.client.links.flatMap((link) => link.sent).length;

  const id = freshKey();
  // What verify() makes up of provider and body.
  const forged = { provider: "other", body: bytes("forged"), event: "e" };
  test.each<[string, expected: object, stored: string[], WebhookProvider?]>([
    [
      "all that was verified",
      { id, scope: ["shop"], timestamp: 7, deliveryId: "d1", idSigned: false },
      ["acme", "shop"],
    ],
    ["an empty scope and no time", { id, deliveryId: id, idSigned: false, scope: [] }, ["github"], provider],
    [
      "no tags of secrets, no other provider and body",
      { id, idSigned: true, scope: [], event: "e" },
      ["acme", "a"],
      accepting({ id, secretTags: ["a", "b"], ...forged }),
    ],
  ])("has %s, and the very bytes, and is stored in its scope", async (_what, expected, stored, given) => {
    const scope = freshKey();
    const sender = given ?? accepting(expected);
    const seen: unknown[] = [];
    const fetch = serving(
      async (request, _, it) => {
        seen.push(it, await request.text());
        return new Response();
      },
      { provider: sender, scope },
    );
    const body = `ä{"n":"${freshKey()}"}`;
    expect((await fetch(delivery(id, { body }))).status).toBe(200);
    // Once, although it may run in the scope of two secrets.
    expect(seen).toEqual([{ ...expected, provider: sender.name, body: bytes(body) }, body]);
    expect((await recordsOf(at.store, id, [...stored, scope], "http"))[0]).toMatch(/^C1 /);
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
    expect((await recordsOf(at.store, id, ["github", tenant], "http"))[0]).toMatch(/^C1 /);
    const before = sent();
    expect((await fetch(delivery(id, { signedWith: "another secret" }))).status).toBe(401);
    expect([calls, runs, sent()]).toEqual([3, 2, before]);
  });

  test.each([
    ["throws", () => Promise.reject(new RangeError("no tenant"))],
    ["is empty", () => ""],
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
});

describe("in Hono", () => {
  const at = opened();

  test("a provider that is missing for one request lets nothing in, not even with a key", async () => {
    const { redlock } = at.client;
    const options = { redlock, provider: () => undefined as unknown as WebhookProvider };
    const app = new Hono().post("*", idempotent(options), () => expect.unreachable("it is not verified"));
    app.onError((error, c) => c.text(error.message, 500));
    const response = await app.fetch(post(freshKey()));
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining("provider")]);
  });
});
