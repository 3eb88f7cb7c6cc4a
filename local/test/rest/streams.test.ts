import { Redis } from "@upstash/redis";
import { describe, expect, test, vi } from "vitest";
import { readEvents } from "../../../test/support/event-reader.ts";
import { engines, redisServer } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";
import { eventStream } from "../../src/event-stream.ts";
import { oneEndpoint } from "../rest-protocol/one-endpoint.ts";

// Whose streams of events are opened, and how: faults.test.ts shows what they have.

describe.each(engines)("streams of events on %s", (engine) => {
  const one = oneEndpoint({ engine, token: "full", readOnlyToken: "reader" });

  function request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: "Bearer full", accept: "text/event-stream" };
    return fetch(one.endpoint.url + path, { method: "POST", headers, ...init });
  }

  test.each(["GET", "POST"])("subscribe, by %s, to several channels", async (method) => {
    const response = await request("/subscribe/a/b%2Cc", { method });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = readEvents(response.body);
    expect([await events.next(), await events.next()]).toEqual([
      "data: subscribe,a,1",
      "data: subscribe,b,c,2",
    ]);
    for (const channel of ["a", "b,c", "d"]) await one.endpoint.execute(["PUBLISH", channel, "one, two"]);
    expect(await events.next()).toBe("data: message,a,one, two");
    expect(await events.next()).toBe("data: message,b,c,one, two");
    await events.cancel();
  });

  test.each<[path: string, token: string, status: number, error: RegExp, accept?: string]>([
    ["/subscribe/a", "wrong", 401, /^WRONGPASS invalid or missing auth token$/],
    ["/subscribe/a", "reader", 400, /^NOPERM /],
    ["/subscribe", "full", 400, /^ERR wrong number of arguments for 'subscribe' command$/],
    ["/subscribe/a", "full", 400, /^ERR Command is not available: 'subscribe'$/, "*/*"],
  ])("refuses %s with the token %s: %i", async (path, token, status, error, accept = "text/event-stream") => {
    const response = await request(path, { headers: { accept, authorization: `Bearer ${token}` } });
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({ error: expect.stringMatching(error) });
  });

  if (engine === "embedded") {
    test("refuses patterns, with what helps", async () => {
      const error = expect.stringMatching(/^ERR unknown command 'PSUBSCRIBE': .*Install redis-server/);
      expect(await (await request("/psubscribe/a")).json()).toEqual({ error });
    });
  }
});

test("a client that leaves 32 MB unread is cut off", async () => {
  const onEnd = vi.fn();
  const { send, body } = eventStream(onEnd);
  for (let sent = 0; sent < 32; sent += 1) send(new Uint8Array(2 ** 20));
  expect(onEnd).not.toHaveBeenCalled();
  send(new Uint8Array(1));
  expect(onEnd).toHaveBeenCalledTimes(1);
  await expect(body.getReader().read()).rejects.toThrow("does not read");
});

describe.skipIf(!redisServer)("@upstash/redis", () => {
  const one = oneEndpoint({ engine: "redis" });

  test("subscribe and psubscribe get the messages; unsubscribe ends them", async () => {
    const { url, token } = one.endpoint;
    const redis = new Redis({ url, token, enableTelemetry: false });
    const got: unknown[] = [];
    const subscriber = redis.subscribe(["a", "b"]);
    const patterns = redis.psubscribe(["c*"]);
    const standing: unknown[] = [];
    subscriber.on("subscribe", (count) => standing.push(count));
    patterns.on("psubscribe", (count) => standing.push(count));
    subscriber.on("message", ({ channel, message }) => got.push([channel, message]));
    patterns.on("pmessage", ({ pattern, channel, message }) => got.push([pattern, channel, message]));
    await until(() => standing.length === 3, "three confirmations");
    expect(await redis.publish("a", { to: "a" })).toBe(1);
    expect(await redis.publish("cd", { to: "cd" })).toBe(1);
    await until(() => got.length === 2, "two messages");
    expect(got).toContainEqual(["a", { to: "a" }]);
    expect(got).toContainEqual(["c*", "cd", { to: "cd" }]);
    await subscriber.unsubscribe(["a"]);
    await until(async () => (await redis.publish("a", "x")) === 0, "the end of one subscription");
    await Promise.all([subscriber.unsubscribe(), patterns.unsubscribe()]);
  });
});
