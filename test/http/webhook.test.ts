import { describe, expect, test } from "vitest";
import type { HttpEvent, HttpOptions } from "../../src/http/index.ts";
import { github, type WebhookProvider } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { type Client, clientOf, recordName, recordsOf } from "../support/stores.ts";
import { delivery, everywhere, type Handler, opened, problemIn, provider, secret } from "./stand.ts";

describe.each(everywhere)("webhooks: %s", (_title, stand, { open, count }) => {
  const at = opened({ open });
  let client: Client;
  let events: HttpEvent[];

  function serving(handler: Handler, options: Partial<HttpOptions> = {}) {
    client = clientOf(at.store);
    events = [];
    const onEvent = (event: HttpEvent) => events.push(event);
    return stand(handler, { redlock: client.redlock, provider, onEvent, ...options });
  }
  const never: Handler = () => expect.unreachable("the handler must not run");
  const sent = () => client.links.flatMap((link) => link.sent);
  const records = (id: string, scope: string[] = []) => recordsOf(at.store, id, ["github", ...scope], "http");

  test("a request without id, or with a signature that is missing or wrong, is 401 and no Redis command", async () => {
    const fetch = serving(never);
    const without = (header: string) => {
      const request = delivery(freshKey());
      request.headers.delete(header);
      return request;
    };
    const wrong = [
      without("x-github-delivery"),
      without("x-hub-signature-256"),
      delivery(freshKey(), { signedWith: "another secret" }),
      new Request(delivery(freshKey()), { body: '{"zen":"no"}' }),
    ];
    for (const request of wrong) {
      expect(await problemIn(await fetch(request))).toEqual({ status: 401, code: "WEBHOOK_INVALID" });
    }
    expect(sent()).toEqual([]);
    expect(events.map(({ type }) => type)).toEqual(Array(4).fill("refused"));
  });

  test("the same id from another sender, of another tenant or of another scope is another key", async () => {
    const id = freshKey();
    const scoped: WebhookProvider = {
      name: "github",
      async verify(request, body) {
        return { ...(await provider.verify(request, body)), scope: ["shop"] };
      },
    };
    let runs = 0;
    const handler: Handler = () => new Response(`${++runs}`);
    const others: Partial<HttpOptions>[] = [
      {},
      { provider: github({ secret, id: "header", name: "github-2" }) },
      { scope: "tenant" },
      { provider: scoped },
      { provider: scoped, scope: ["tenant"] },
    ];
    for (const options of others) {
      const fetch = serving(handler, options);
      const own = await (await fetch(delivery(id))).text();
      expect(await (await fetch(delivery(id))).text()).toBe(own);
    }
    expect(runs).toBe(others.length);
    expect(await records(id, ["shop", "tenant"])).toEqual(
      new Array(count).fill(expect.stringMatching(/^C1 /)),
    );
    const name = await recordName(id, ["github", "shop", "tenant"], "http");
    expect((await at.store.execute(0, ["PTTL", name])) as number).toBeGreaterThan(6 * 86_400_000);
  });
});
