import { describe, expect, test } from "vitest";
import type { HttpEvent, HttpOptions } from "../../src/http/index.ts";
import { parseRecord } from "../../src/idempotency/record.ts";
import { github, type WebhookProvider } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { allArrived, type Client, clientOf, recordName, recordsOf } from "../support/stores.ts";
import {
  delivery,
  everywhere,
  type Handler,
  opened,
  problemIn,
  provider,
  secret,
  seen,
  slowHandler,
} from "./stand.ts";

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

  test("runs once per delivery, also when the body differs, and replays", async () => {
    const id = freshKey();
    let runs = 0;
    const fetch = serving(async (request, run) => {
      runs += 1;
      return Response.json({ key: run?.key, body: await request.json() });
    });
    const first = await seen(await fetch(delivery(id)));
    const again = await seen(await fetch(delivery(id, { body: '{"zen":"ok","attempt":2}' })));
    expect(again).toMatchObject({
      status: 200,
      bytes: first.bytes,
      headers: { "idempotent-replayed": "true" },
    });
    expect(JSON.parse(new TextDecoder().decode(again.bytes))).toEqual({ key: id, body: { zen: "ok" } });
    expect(runs).toBe(1);
    expect(parseRecord((await records(id))[0])?.state).toBe("complete");
    const name = await recordName(id, ["github"], "http");
    expect((await at.store.execute(0, ["PTTL", name])) as number).toBeGreaterThan(6 * 86_400_000);
  });

  test("a bad signature is 401 and no Redis command", async () => {
    const fetch = serving(never);
    const requests = at.store.cost(0).requests;
    for (const signedWith of ["another secret", `${secret} `]) {
      const response = await fetch(delivery(freshKey(), { signedWith }));
      expect(await problemIn(response)).toEqual({ status: 401, code: "WEBHOOK_INVALID" });
    }
    const tampered = delivery(freshKey());
    const other = new Request(tampered, { body: '{"zen":"no"}' });
    expect((await fetch(other)).status).toBe(401);
    expect(sent()).toEqual([]);
    expect(at.store.cost(0).requests).toBe(requests);
    expect(events.map(({ type }) => type)).toEqual(["refused", "refused", "refused"]);
  });

  test("a request without id or signature is 401 and no Redis command", async () => {
    const fetch = serving(never);
    for (const header of ["x-github-delivery", "x-hub-signature-256"]) {
      const request = delivery(freshKey());
      request.headers.delete(header);
      expect(await problemIn(await fetch(request))).toEqual({ status: 401, code: "WEBHOOK_INVALID" });
    }
    expect(sent()).toEqual([]);
  });

  test("duplicates during a run wait, then get 503 with Retry-After, and never 2xx", async () => {
    const id = freshKey();
    const slow = slowHandler();
    const fetch = serving(slow.handler, { wait: 100, backoff: { min: 10, max: 30 } });
    const first = fetch(delivery(id));
    await slow.started.passed;
    await allArrived(client.links);
    for (const response of await Promise.all(Array.from({ length: 5 }, () => fetch(delivery(id))))) {
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
      expect(await problemIn(response)).toEqual({ status: 503, code: "IN_PROGRESS" });
    }
    slow.finish(new Response(null, { status: 500 }));
    expect((await first).status).toBe(500);
    // The first has failed after all: the event is not lost.
    const retry = serving(() => new Response("handled"));
    expect(await (await retry(delivery(id))).text()).toBe("handled");
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
  });
});
