import { createHmac } from "node:crypto";
import { Hono } from "hono";
import { afterEach, beforeEach, describe, expect, type MockInstance, test, vi } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { lock } from "../../src/hono/index.ts";
import type { HttpOptions } from "../../src/http/index.ts";
import { Redlock, type RedlockOptions } from "../../src/index.ts";
import { systemRuntime } from "../../src/runtime/runtime.ts";
import { github, stripe, twilio } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { post, stands } from "./stand.ts";

// What an operator reads on the console who has set up nothing.

let warn: MockInstance<typeof console.warn>;
beforeEach(() => {
  warn = vi.spyOn(console, "warn").mockReturnValue();
});
afterEach(() => warn.mockRestore());
const lines = () => warn.mock.calls.map((call) => call.join(" "));

const secret = "whsec_never-on-the-console";
const body = '{"card":"4242-4242"}';
const ok = () => new Response("ok");

/** A client on three endpoints that can be stopped, with a clock of its own that is set by hand. */
function world(options: Partial<RedlockOptions> = {}) {
  let now = systemRuntime.now();
  const endpoints = ["a", "b", "c"].map((name) => memoryEndpoint({ name }));
  const runtime = { ...systemRuntime, now: () => now };
  const setAll = (how: "stop" | "start") => {
    for (const endpoint of endpoints) endpoint[how]();
  };
  return {
    redlock: new Redlock({ endpoints, runtime, ...options }),
    stop: () => setAll("stop"),
    start: () => setAll("start"),
    advance(ms: number) {
      now += ms;
    },
  };
}

function delivery(signedWith = secret): Request {
  const signature = createHmac("sha256", signedWith).update(body).digest("hex");
  const headers = { "x-hub-signature-256": `sha256=${signature}` };
  return new Request("https://a.example/hooks", { method: "POST", body, headers });
}

describe.each(stands)("%s", (_name, stand) => {
  test("an outage is one line a minute, with its cause and the number of those without a line", async () => {
    const { redlock, stop, start, advance } = world();
    const answer = stand(ok, { redlock, provider: github({ secret }), wait: 0 });
    stop();
    for (let index = 0; index < 3; index += 1) expect((await answer(delivery())).status).toBe(503);
    expect(lines()).toEqual([
      expect.stringMatching(/^redlock-edge: answered 503 NO_QUORUM: no quorum to .*a: .*refused.*; c: .*$/),
    ]);
    advance(59_000);
    await answer(delivery());
    expect(lines()).toHaveLength(1);
    advance(2_000);
    await answer(delivery());
    expect(lines()).toHaveLength(2);
    expect(lines()[1]).toMatch(/ \(and 3 more since the last such line\)$/);
    start();
    // The clock may have been set back.
    advance(-3_600_000);
    stop();
    await answer(delivery());
    expect(lines()).toHaveLength(3);
    for (const line of lines()) {
      expect(line).not.toMatch(/4242|never-on-the-console|\n/);
      expect(line.length).toBeLessThan(1_000);
    }
  });

  test("a URL that is not the signed one is told to the operator, and not to the client", async () => {
    const { redlock } = world();
    const provider = twilio({ secret: "a".repeat(32) });
    const given = { path: "/behind-a-proxy", headers: { "x-twilio-signature": `${"A".repeat(27)}=` } };
    const told: string[] = [];
    const onEvent = (event: object) => "error" in event && told.push(String(event.error));
    // A hook replaces the console.
    for (const options of [{ onEvent }, {}]) {
      expect(lines()).toEqual([]);
      const response = await stand(ok, { redlock, provider, ...options })(post(null, given));
      expect(response.status).toBe(401);
      expect(await response.text()).not.toContain("/behind-a-proxy");
    }
    const named = expect.stringMatching(/another URL than https?:.*\/behind-a-proxy: .* set the option url /);
    expect(lines()).toEqual([named]);
    expect(told).toEqual([named]);
  });

  test("names that a sender can choose make no further lines", async () => {
    const { redlock } = world();
    for (let index = 0; index < 20; index += 1) {
      const provider = stripe({ secret: `whsec_${index}`, name: `tenant-${index}` });
      expect((await stand(ok, { redlock, provider })(post(null, { body }))).status).toBe(401);
    }
    expect(lines()).toHaveLength(1);
  });

  test.each<[what: string, options: Partial<HttpOptions>, sent: () => Request, line: RegExp]>([
    [
      "a wrong signature",
      {},
      () => delivery("another"),
      /401 WEBHOOK_INVALID: github: none of the keys made this/,
    ],
    [
      "no signature",
      {},
      () => post(null, { body }),
      /401 WEBHOOK_INVALID: github: no header x-hub-signature-256$/,
    ],
    [
      "another path",
      {},
      () => new Request("https://a.example/other", delivery()),
      /500 HANDLER_MISMATCH \(set the option handler/,
    ],
    ["a body that is too large", { maxRequestBody: 5 }, delivery, /413 BODY_TOO_LARGE$/],
  ])("a delivery with %s is told, once a minute", async (_what, options, sent, line) => {
    const { redlock } = world();
    const given = { redlock, provider: github({ secret }) };
    await stand(ok, given)(delivery());
    for (let index = 0; index < 2; index += 1) await stand(ok, { ...given, ...options })(sent());
    expect(lines()).toEqual([expect.stringMatching(line)]);
    expect(lines()[0]).not.toMatch(/4242|never-on-the-console/);
  });

  test("a handler without protection is told", async () => {
    const { redlock, stop } = world();
    stop();
    expect((await stand(ok, { redlock, failOpen: true })(post(freshKey()))).status).toBe(200);
    expect(lines()).toEqual([expect.stringContaining("redlock-edge: ran without protection: no quorum to ")]);
  });

  test("a response that could not be stored is told: its handler runs again after the lease", async () => {
    const { redlock, stop } = world();
    const handler = () => {
      stop();
      return ok();
    };
    const answer = stand(handler, { redlock, provider: github({ secret }), timeout: 20, wait: 0 });
    expect((await answer(delivery())).status).toBe(200);
    const line = /^redlock-edge: a response is not stored \(no-quorum\) for the key "\w+"$/;
    expect(lines()).toEqual([expect.stringMatching(line)]);
  });

  test("what a client can cause is not told", async () => {
    const { redlock } = world();
    const answer = stand(ok, { redlock });
    const key = freshKey();
    await answer(post(key));
    expect((await answer(post(null))).status).toBe(400);
    expect((await answer(post("a,b"))).status).toBe(400);
    expect((await answer(post(key, { body: "other" }))).status).toBe(422);
    expect(lines()).toEqual([]);
  });
});

test.each([
  ["an outage of lock() is told", {}, 1],
  ["unless the client has a hook", { onEvent: () => undefined }, 0],
])("%s", async (_what, options, count) => {
  const { redlock, stop } = world(options);
  const app = new Hono().post("*", lock({ redlock, resource: "r", wait: 0 }), (c) => c.text("done"));
  stop();
  for (let index = 0; index < 2; index += 1) expect((await app.fetch(post(null))).status).toBe(503);
  expect(lines()).toHaveLength(count);
  if (count) expect(lines()[0]).toMatch(/^redlock-edge: answered 503 NO_QUORUM: no quorum to acquire "r": /);
});
