import { describe, expect, test } from "vitest";
import type { HttpEvent, HttpOptions } from "../../src/http/index.ts";
import { parseRecord, pendingText } from "../../src/idempotency/record.ts";
import { QuorumError } from "../../src/index.ts";
import type { Runtime } from "../../src/runtime.ts";
import { freshKey } from "../support/fresh-key.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { allArrived, type Client, clientOf, recordName, recordsOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { everywhere, type Handler, opened, post, problemIn, seen, slowHandler } from "./stand.ts";

describe.each(everywhere)("requests with an Idempotency-Key: %s", (_title, stand, { open, count }) => {
  const at = opened({ open });
  let client: Client;
  let events: HttpEvent[];

  /** A server with a client of its own, so that what goes wrong there concerns nobody else. */
  function serving(handler: Handler, options: Partial<HttpOptions> = {}, runtime?: Runtime) {
    client = clientOf(at.store, {}, { runtime });
    events = [];
    const onEvent = (event: HttpEvent) => event.type !== "called" && events.push(event);
    return stand(handler, { redlock: client.redlock, onEvent, ...options });
  }
  const never: Handler = () => expect.unreachable("the handler must not run");
  const paid: Handler = () => new Response("paid", { status: 201, headers: { location: "/payments/7" } });
  const _states = async (key: string) =>
    (await recordsOf(at.store, key, [], "http")).map((text) => parseRecord(text)?.state);
  const free = () => new Array(count).fill(null);

  test("runs once and replays status, headers and bytes", async () => {
    const key = freshKey();
    let runs = 0;
    const fetch = serving(async (request, run) => {
      expect(run?.key).toBe(key);
      expect(run?.remaining()).toBeGreaterThan(0);
      runs += 1;
      return Response.json({ got: await request.json() }, { status: 201, headers: { location: "/p/1" } });
    });
    const first = await fetch(post(key));
    expect(first.headers.has("idempotent-replayed")).toBe(false);
    const again = await seen(await fetch(post(key)));
    expect(again.headers).toEqual({
      "content-type": "application/json",
      location: "/p/1",
      "idempotent-replayed": "true",
    });
    expect(again.status).toBe(201);
    expect(again.bytes).toEqual((await seen(first)).bytes);
    expect(runs).toBe(1);
    expect(events.map(({ type }) => type)).toEqual(["executed", "replayed"]);
    // Two commands per endpoint for the first, one for the duplicate; and one once, that shows whether null is true.
    await allArrived(client.links);
    expect(client.links.map(({ sent }) => sent.length)).toEqual(new Array(count).fill(4));
  });

  test("no key is 400, or passed through by option; methods that are safe need none", async () => {
    const fetch = serving(never);
    expect(await problemIn(await fetch(post(null)))).toEqual({ status: 400, code: "KEY_MISSING" });
    expect(events).toMatchObject([{ type: "refused", status: 400, code: "KEY_MISSING", key: undefined }]);
    let runs = 0;
    const handler: Handler = async (request, run) => {
      expect(run).toBeUndefined();
      runs += 1;
      return new Response(await request.text());
    };
    const lenient = serving(handler, { required: false });
    for (let times = 0; times < 2; times += 1) {
      expect(await (await lenient(post(null, { body: "through" }))).text()).toBe("through");
    }
    const strict = serving(handler);
    for (const method of ["GET", "HEAD", "OPTIONS"]) {
      expect((await strict(new Request("https://api.example/", { method }))).status).toBe(200);
    }
    expect(runs).toBe(5);
    expect(client.links.flatMap(({ sent }) => sent)).toEqual([]);
  });

  test.each(["", '"half', "café"])("the key %j is 400", async (key) => {
    const response = await serving(never)(post(key));
    expect(await problemIn(response)).toEqual({ status: 400, code: "KEY_INVALID" });
    expect(client.links.flatMap(({ sent }) => sent)).toEqual([]);
  });

  test("quoted and bare name the same key", async () => {
    const key = `${freshKey()} "and" \\ so on`;
    const fetch = serving(paid);
    await fetch(post(key));
    const quoted = await fetch(post(JSON.stringify(key)));
    expect(quoted.headers.get("idempotent-replayed")).toBe("true");
    const longest = freshKey().padEnd(255, "x");
    await fetch(post(`"${longest}"`));
    expect((await fetch(post(longest))).headers.get("idempotent-replayed")).toBe("true");
  });

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
    expect(slow.runs).toBe(1);
  });

  test("the same key in other scopes is another key", async () => {
    const key = freshKey();
    let runs = 0;
    for (const scope of ["a", "b", ["a", "b"], ["a:b"]]) {
      const fetch = serving(() => new Response(`${++runs}`), { scope });
      const own = await (await fetch(post(key))).text();
      expect(await (await fetch(post(key))).text()).toBe(own);
    }
    expect(runs).toBe(4);
  });

  test.each([206, 500, 503, 401, 403, 407, 408, 409, 423, 425, 426, 429])(
    "%i is passed through and the key is free",
    async (status) => {
      const key = freshKey();
      let runs = 0;
      const fetch = serving(() => {
        runs += 1;
        return runs === 1
          ? new Response("no", { status, headers: { "x-why": "because", "set-cookie": "a=1" } })
          : new Response("yes");
      });
      const first = await seen(await fetch(post(key)));
      expect(first).toMatchObject({ status, headers: { "x-why": "because", "set-cookie": "a=1" } });
      expect(new TextDecoder().decode(first.bytes)).toBe("no");
      expect(await recordsOf(at.store, key, [], "http")).toEqual(free());
      expect(await (await fetch(post(key))).text()).toBe("yes");
      expect(events.map(({ type }) => type)).toEqual(["failed", "executed"]);
    },
  );

  test.each([200, 301, 400, 404, 422])("%i is stored", async (status) => {
    const key = freshKey();
    const fetch = serving(() => new Response("x", { status }));
    await fetch(post(key));
    const again = await fetch(post(key));
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([status, "true"]);
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

  test("with failOpen a store that is down runs the handler unprotected", async () => {
    const handler: Handler = async (request, run) => {
      expect(run).toBeUndefined();
      return new Response(await request.text());
    };
    const fetch = serving(handler, { failOpen: true });
    for (const link of client.links) link.fate = () => "refused";
    expect(await (await fetch(post(undefined, { body: "all of it" }))).text()).toBe("all of it");
    expect(events.map(({ type }) => type)).toContain("unguarded");
  });

  describe("lost: another run took over", () => {
    const other = { token: "tother", fingerprint: "-" };

    /** A handler in whose time another run writes `text` over its record. */
    const overtaken =
      (key: string, text: () => string): Handler =>
      async () => {
        await allArrived(client.links);
        const name = await recordName(key, [], "http");
        const record = text();
        for (let index = 0; index < count; index += 1) await at.store.execute(index, ["SET", name, record]);
        return new Response("mine", { headers: { "x-mine": "1", "access-control-allow-origin": "*" } });
      };

    test("409 while it is under way", async () => {
      const key = freshKey();
      const text = () => pendingText({ ...other, startedAt: Date.now() });
      const response = await serving(overtaken(key, text))(post(key));
      expect(response.headers.get("retry-after")).toBe("1");
      expect(await problemIn(response)).toEqual({ status: 409, code: "LEASE_LOST" });
      expect(response.headers.has("x-mine")).toBe(false);
    });

    test("409 when it has no result; the handler does not run again", async () => {
      const key = freshKey();
      const name = await recordName(key, [], "http");
      let runs = 0;
      const fetch = serving(async (request, run) => {
        runs += 1;
        const answer = await overtaken(key, () => pendingText({ ...other, startedAt: Date.now() }))(
          request,
          run,
        );
        for (const [index, link] of client.links.entries()) {
          // The last of the commands that complete is the one that shows the other's record.
          link.fate = (command) =>
            command.includes("GET") ? { after: () => at.store.execute(index, ["DEL", name]) } : "delivered";
        }
        return answer;
      });
      expect(await problemIn(await fetch(post(key)))).toEqual({ status: 409, code: "LEASE_LOST" });
      expect(runs).toBe(1);
      await until(async () => (await recordsOf(at.store, key, [], "http")).every((text) => text === null));
    });
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
});
