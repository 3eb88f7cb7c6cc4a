import { Redis } from "@upstash/redis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type EventReader, readEvents } from "../../../../test/support/event-reader.ts";
import { engines } from "../../../../test/support/redis-servers.ts";
import { until } from "../../../../test/support/until.ts";
import { type LocalEndpoint, type LocalEndpoints, start } from "../../../src/index.ts";

describe.each(engines)("streams of events on %s", (engine) => {
  let local: LocalEndpoints;
  let endpoint: LocalEndpoint;
  const opened: AbortController[] = [];

  beforeAll(async () => {
    local = await start({ count: 1, engine });
    endpoint = local.endpoints[0]!;
  });
  afterEach(async () => {
    for (const controller of opened.splice(0)) controller.abort();
    await until(async () => (await subscribers()) === 0, "the end of all subscriptions");
    endpoint.log.reset();
  });
  afterAll(() => local.close());

  function request(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Bearer ${endpoint.token}`, accept: "text/event-stream" };
    return fetch(endpoint.url + path, { method: "POST", headers, ...init });
  }

  async function open(path: string): Promise<EventReader> {
    const controller = new AbortController();
    opened.push(controller);
    const { body } = await request(path, { signal: controller.signal });
    return readEvents(body);
  }

  async function subscribers(): Promise<number> {
    const [, one, , other] = (await endpoint.execute(["PUBSUB", "NUMSUB", "a", "b,c"])) as [
      string,
      number,
      string,
      number,
    ];
    const patterns = engine === "redis" ? ((await endpoint.execute(["PUBSUB", "NUMPAT"])) as number) : 0;
    return one + other + patterns;
  }

  /** The embedded engine has no Lua, and no patterns. */
  const onRedis = engine === "redis" ? test : () => undefined;
  const publish = (channel: string, payload: string) => endpoint.execute(["PUBLISH", channel, payload]);

  test.each(["GET", "POST"])("subscribe, by %s, confirms and then has the messages", async (method) => {
    const controller = new AbortController();
    opened.push(controller);
    const response = await request("/subscribe/a/b%2Cc", { method, signal: controller.signal });
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const events = readEvents(response.body);
    expect(await events.next()).toBe("data: subscribe,a,1");
    expect(await events.next()).toBe("data: subscribe,b,c,2");
    expect(await endpoint.execute(["PUBSUB", "NUMSUB", "a", "b,c", "d"])).toEqual(["a", 1, "b,c", 1, "d", 0]);
    expect(await publish("a", "one, two")).toBe(1);
    expect(await events.next()).toBe("data: message,a,one, two");
    expect(await publish("b,c", "zwölf\nlines")).toBe(1);
    expect(await events.next()).toBe("data: message,b,c,zwölf\ndata: lines");
    expect(await publish("d", "nobody")).toBe(0);
  });

  onRedis("psubscribe names the pattern and the channel", async () => {
    const events = await open("/psubscribe/lock:*/none%3F");
    expect(await events.next()).toBe("data: psubscribe,lock:*,1");
    expect(await events.next()).toBe("data: psubscribe,none?,2");
    expect(await publish("lock:1", "free")).toBe(1);
    expect(await events.next()).toBe("data: pmessage,lock:*,lock:1,free");
  });

  if (engine === "embedded") {
    test("psubscribe is refused, with what helps", async () => {
      const response = await request("/psubscribe/lock:*");
      expect([response.status, await response.json()]).toEqual([
        400,
        { error: expect.stringMatching(/^ERR unknown command 'PSUBSCRIBE': .*Install redis-server/) },
      ]);
    });
  }

  test.each([
    ["/subscribe/a", "wrong", 401, /^WRONGPASS invalid or missing auth token$/],
    ["/subscribe/a", "read-only", 400, /^NOPERM /],
    ["/subscribe", "full", 400, /^ERR wrong number of arguments for 'subscribe' command$/],
    ["/subscribe/a", "full", 400, /^ERR Command is not available: 'subscribe'$/, "*/*"],
  ])("refuses %s with the %s token: %i", async (path, token, status, error, accept = "text/event-stream") => {
    const tokens = { wrong: "wrong", "read-only": endpoint.readOnlyToken, full: endpoint.token };
    const authorization = `Bearer ${tokens[token as keyof typeof tokens]}`;
    const response = await request(path, { headers: { accept, authorization } });
    expect([response.status, await response.json()]).toEqual([
      status,
      { error: expect.stringMatching(error) },
    ]);
  });

  onRedis("@upstash/redis: subscribe and psubscribe get the messages; unsubscribe ends them", async () => {
    const { url, token } = endpoint;
    const redis = new Redis({ url, token, enableTelemetry: false });
    const got: unknown[] = [];
    const subscriber = redis.subscribe(["a", "b"]);
    const patterns = redis.psubscribe(["c*"]);
    let standing = 0;
    const stands = () => {
      standing++;
    };
    subscriber.on("subscribe", stands);
    patterns.on("psubscribe", stands);
    subscriber.on("message", ({ channel, message }) => got.push([channel, message]));
    patterns.on("pmessage", ({ pattern, channel, message }) => got.push([pattern, channel, message]));
    await until(() => standing === 3, "three confirmations");
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
