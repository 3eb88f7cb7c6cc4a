import { describe, expect, test } from "vitest";
import { type HttpOptions, withIdempotency } from "../../src/http/index.ts";
import { type SignedDelivery, signedDelivery } from "../../src/testing/index.ts";
import { github, slack, stripe } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { allArrived, clientOf } from "../support/stores.ts";
import { opened, post, seen, slowHandler } from "./stand.ts";

// What public reports tell of webhooks and of requests with keys: docs/incidents.md has the reports.

const at = opened();

const requestOf = (delivery: SignedDelivery) => new Request(delivery.url, delivery);

/** A handler that counts its runs, behind a client of its own: another replica. */
function replica(
  options: Omit<HttpOptions, "redlock">,
  handler: (run: number) => Response | Promise<Response>,
) {
  const { redlock, links } = clientOf(at.store);
  const served = {
    runs: 0,
    links,
    fetch: (request: Request) =>
      withIdempotency(request, () => handler(++served.runs), {
        onEvent: () => undefined,
        ...options,
        redlock,
        handler: "incidents",
      }),
  };
  return served;
}

describe("a delivery", () => {
  test.each([
    ["emoji and accents", JSON.stringify({ title: "Déployé 🚀 👩‍🚀" })],
    ["escapes that JSON would not write again", '{ "price":1.0, "text":"\\u00e9\\/" }\n'],
  ])("with %s is verified, because its bytes are hashed as they came", async (_what, body) => {
    const secret = "it is a secret to everybody";
    const delivery = await signedDelivery(github, { secret }, { body });
    const { fetch } = replica({ provider: github({ secret }) }, () => new Response("ok"));
    const send = (sent: string) => fetch(requestOf({ ...delivery, body: sent }));
    expect((await send(body)).status).toBe(200);
    expect((await send(JSON.stringify(JSON.parse(body)).replace("🚀", "?"))).status).toBe(401);
  });

  test("of one event through two endpoints with a secret each acts once", async () => {
    const secrets = ["whsec_of_the_account", "whsec_of_connect"];
    const { fetch } = replica({ provider: stripe({ secret: secrets }) }, (run) => new Response(`run ${run}`));
    const body = { id: `evt_${freshKey()}`, type: "charge.succeeded" };
    for (const secret of secrets) {
      const sent = await signedDelivery(stripe, { secret }, { body });
      expect(await (await fetch(requestOf(sent))).text()).toBe("run 1");
    }
  });

  test("that has failed runs again when its sender retries, and then no more", async () => {
    const secret = "whsec_retried";
    const answers = [500, 200, 500];
    const { fetch } = replica({ provider: stripe({ secret }) }, (run) => {
      return new Response(`run ${run}`, { status: answers[run - 1]! });
    });
    const body = { id: `evt_${freshKey()}` };
    const got: [number, string][] = [];
    for (const _ of answers) {
      const response = await fetch(requestOf(await signedDelivery(stripe, { secret }, { body })));
      got.push([response.status, await response.text()]);
    }
    expect(got).toEqual([
      [500, "run 1"],
      [200, "run 2"],
      [200, "run 2"],
    ]);
  });

  test("that Slack repeats after 3 s, while the handler runs, starts nothing", async () => {
    const secret = "a-signing-secret";
    const slow = slowHandler();
    const guarded = replica({ provider: slack({ secret }), wait: 0 }, () =>
      slow.handler(new Request("https://a.example"), undefined),
    );
    const body = { type: "event_callback", event_id: `Ev${freshKey()}` };
    const send = async (headers: Record<string, string> = {}) =>
      guarded.fetch(requestOf(await signedDelivery(slack, { secret }, { body, headers })));
    const retried = (number: string) =>
      send({ "x-slack-retry-num": number, "x-slack-retry-reason": "http_timeout" });
    const first = send();
    await slow.started.passed;
    await allArrived(guarded.links);
    expect((await retried("1")).status).toBe(503);
    slow.finish(new Response("replied"));
    expect(await (await first).text()).toBe("replied");
    expect(await (await retried("2")).text()).toBe("replied");
    expect(guarded.runs).toBe(1);
  });
});

describe("a request with a key", () => {
  test("that reaches another replica gets the first one's answer, with its status, headers and body", async () => {
    const created = () =>
      Response.json({ id: 7 }, { status: 201, headers: { location: "/orders/7", etag: '"7"' } });
    const [one, other] = [replica({}, created), replica({}, created)];
    const key = freshKey();
    const first = await seen(await one.fetch(post(key)));
    const again = await seen(await other.fetch(post(key)));
    expect(again).toMatchObject({ status: 201, bytes: first.bytes });
    expect(again.headers).toEqual({ ...first.headers, "idempotent-replayed": "true" });
    expect([one.runs, other.runs]).toEqual([1, 0]);
  });
});
