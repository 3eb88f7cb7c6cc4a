import { describe, expect, test } from "vitest";
import type { HttpEvent, HttpOptions } from "../../src/http/index.ts";
import { QuorumError } from "../../src/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { allArrived, type Client, clientOf, recordName, recordsOf } from "../support/stores.ts";
import {
  delivery,
  everywhere,
  type Handler,
  opened,
  post,
  problemIn,
  provider,
  slowHandler,
} from "./stand.ts";

describe.each(everywhere)("requests with an Idempotency-Key: %s", (_title, stand, { open, count }) => {
  const at = opened({ open });
  let client: Client;
  let events: HttpEvent[];

  /** A server with a client of its own, so that what goes wrong there concerns nobody else. */
  function serving(handler: Handler, options: Partial<HttpOptions> = {}) {
    client = clientOf(at.store);
    events = [];
    const onEvent = (event: HttpEvent) => events.push(event);
    return stand(handler, { redlock: client.redlock, onEvent, ...options });
  }
  const never: Handler = () => expect.unreachable("the handler must not run");
  const free = () => new Array(count).fill(null);

  test("busy is 409 with Retry-After, a different request 422 even then", async () => {
    const key = freshKey();
    const slow = slowHandler();
    const fetch = serving(slow.handler);
    const first = fetch(post(key));
    await slow.started.passed;
    await allArrived(client.links);
    const busy = await fetch(post(key));
    const seconds = Number(busy.headers.get("retry-after"));
    expect(Number.isInteger(seconds) && seconds >= 1 && seconds <= 30).toBe(true);
    expect(await problemIn(busy)).toEqual({ status: 409, code: "IN_PROGRESS" });
    const others = [
      post(key, { body: '{"amount":99}' }),
      post(key, { path: "/refunds" }),
      post(key, { path: "/payments?twice" }),
      post(key, { method: "PATCH" }),
    ];
    for (const other of others) {
      expect(await problemIn(await fetch(other))).toEqual({ status: 422, code: "FINGERPRINT_MISMATCH" });
    }
    slow.finish(new Response("done"));
    expect(await (await first).text()).toBe("done");
    expect((await fetch(post(key, { body: "other" }))).status).toBe(422);
    const elsewhere = new Request("http://b.example:8080/payments#here", post(key));
    expect((await fetch(elsewhere)).headers.get("idempotent-replayed")).toBe("true");
    expect(slow.runs).toBe(1);
  });

  test.each<[what: string, options: Partial<HttpOptions>, send: (id: string) => Request, stored: number[]]>([
    [
      "all that a retry would get again",
      {},
      post,
      [200, 201, 204, 299, 301, 304, 400, 402, 404, 410, 422, 424, 428, 430, 498],
    ],
    ["of a webhook's, those that the sender takes for success", { provider }, delivery, [200, 201, 204, 299]],
    ["those that the option names", { provider, store: ({ status }) => status === 500 }, delivery, [500]],
  ])("responses that are stored: %s", async (_what, options, send, stored) => {
    const statuses = [
      ...[200, 201, 204, 206, 299, 301, 304, 400, 401, 402, 403, 404, 407, 408, 409, 410, 422, 423, 424],
      ...[425, 426, 428, 429, 430, 498, 499, 500, 503, 599],
    ];
    const replayed: number[] = [];
    for (const status of statuses) {
      const id = freshKey();
      let runs = 0;
      const fetch = serving(() => new Response(null, { status: ++runs && status }), options);
      for (let times = 0; times < 2; times += 1) expect((await fetch(send(id))).status).toBe(status);
      if (runs === 1) replayed.push(status);
    }
    expect(replayed).toEqual(stored);
  });

  test("a store that is down is 503, and the answer does not describe the store", async () => {
    const key = freshKey();
    const fetch = serving(never);
    for (const link of client.links) link.fate = () => "refused";
    const response = await fetch(post(key));
    expect(response.headers.get("retry-after")).toBe("1");
    const text = await response.clone().text();
    expect(await problemIn(response)).toEqual({ status: 503, code: "NO_QUORUM" });
    expect(text).not.toMatch(/endpoint/);
    const refused = events.find(({ type }) => type === "refused");
    expect(refused).toMatchObject({ status: 503, key });
    expect((refused as { error: unknown }).error).toBeInstanceOf(QuorumError);
  });

  test.each([true, false])(
    "a handler's own error is not taken for the store's, failOpen %s",
    async (failOpen) => {
      const key = freshKey();
      const failure = new QuorumError("acquire", ["something of the handler"], []);
      let runs = 0;
      const handler: Handler = () => {
        runs += 1;
        throw failure;
      };
      const { value, error } = await outcomeOf(serving(handler, { failOpen })(post(key)));
      // Hono makes a 500 of it; without Hono it is the caller's.
      if (value) expect([value.status, await value.text()]).toEqual([500, "Internal Server Error"]);
      else expect(error).toBe(failure);
      expect(runs).toBe(1);
      expect(await recordsOf(at.store, key, [], "http")).toEqual(free());
    },
  );

  test("an error of a provider or a fingerprint that is none of this package's is thrown", async () => {
    const own = new Error("its own");
    const failing = () => Promise.reject(own);
    for (const options of [{ fingerprint: failing }, { provider: { name: "acme", verify: failing } }]) {
      const { value, error } = await outcomeOf(serving(never, options)(post()));
      if (value) expect(value.status).toBe(500);
      else expect(error).toBe(own);
    }
  });

  test("a delivery begins in the scopes of its secrets in one order everywhere, in each of them once", async () => {
    const id = freshKey();
    const verify = async () => ({ id, idSigned: true, secretTags: ["b", "a", "b"] });
    const fetch = serving(() => new Response(), { provider: { name: "acme", verify } });
    expect((await fetch(post())).status).toBe(200);
    const begun = client.links[0]!.sent.map((command) => command[1]);
    expect(begun[0]).toBe(await recordName(id, ["acme", "a"], "http"));
    expect(new Set(begun)).toEqual(new Set([begun[0], await recordName(id, ["acme", "b"], "http")]));
  });

  test("with a lock that another holds it is 409, and leaves its key free", async () => {
    const [lock, key] = [freshKey(), freshKey()];
    const held = await at.client.redlock.acquire(lock, { note: "for-operators" });
    const fetch = serving(() => new Response("done"), { lock });
    const refused = await fetch(post(key));
    expect(refused.status).toBe(409);
    // What a holder says of itself is not for strangers.
    expect(`${JSON.stringify([...refused.headers])}${await refused.text()}`).not.toContain("for-operators");
    await held.release();
    expect(await (await fetch(post(key))).text()).toBe("done");
    const again = await at.client.redlock.acquire(lock);
    // A duplicate needs no lock.
    expect((await fetch(post(key))).headers.get("idempotent-replayed")).toBe("true");
    await again.release();
  });
});
