import { describe, expect, test } from "vitest";
import { type Endpoint, EndpointError, httpEndpoint } from "../../../src/index.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { readEvents } from "../../../test/support/event-reader.ts";
import { isSettled } from "../../../test/support/outcomes.ts";
import { engines } from "../../../test/support/redis-servers.ts";
import { until } from "../../../test/support/until.ts";
import { type FaultRule, Faults } from "../../src/faults/faults.ts";
import { type LocalEndpoint, start } from "../../src/index.ts";
import { type MemoryEndpoint, memoryEndpoint, VirtualTime } from "../../src/memory/index.ts";

// Each fault and crash, at an endpoint in memory and at endpoints over HTTP: what is executed, and what the client gets.

type Words = readonly (string | number)[];

/** Where a memory endpoint and one over HTTP differ. */
interface Server extends AsyncDisposable {
  readonly log: () => readonly { readonly command: readonly unknown[]; readonly billed: number }[];
  /** Past all faults. */
  look(...command: Words): Promise<unknown>;
  pass(ms: number): Promise<void>;
}

/** An endpoint with its client. */
function standOf(
  client: Endpoint,
  endpoint: LocalEndpoint | MemoryEndpoint,
  rules: readonly FaultRule[],
  server: Server,
) {
  const controller = new AbortController();
  const { signal } = controller;
  for (const rule of rules) endpoint.faults.add(rule);
  return {
    ...server,
    faults: endpoint.faults,
    stop: () => endpoint.stop(),
    start: (options?: { memory: "lost" }) => endpoint.start(options),
    /** The reply; or `broken`, `http 503`, `aborted`, or the error of Redis. */
    send: (...command: Words) =>
      client.send(command, signal).catch((error: unknown) => {
        if (!(error instanceof EndpointError)) throw error;
        const { kind, status, message } = error;
        return { network: "broken", http: `http ${status}`, timeout: "aborted" }[kind as string] ?? message;
      }),
    /** Subscribes to the channel `a`. */
    subscribe: () => client.subscribe!("a", signal),
    /** The client does not wait for an answer any more, and leaves its streams. */
    abort: () => controller.abort(),
  };
}

type Stand = ReturnType<typeof standOf>;

async function inMemory(rules: readonly FaultRule[] = []): Promise<Stand> {
  const runtime = new VirtualTime();
  const endpoint = memoryEndpoint({ runtime });
  return standOf(endpoint, endpoint, rules, {
    log: () => endpoint.log,
    look: async (...command) => endpoint.engine.execute(command),
    pass: (ms) => runtime.advance(ms),
    [Symbol.asyncDispose]: async () => undefined,
  });
}

async function overHttp(engine: "redis" | "embedded", rules: readonly FaultRule[] = []): Promise<Stand> {
  const local = await start({ count: 1, engine });
  const [endpoint] = local.endpoints;
  return standOf(httpEndpoint(endpoint), endpoint, rules, {
    log: () => endpoint.log.entries,
    look: (...command) => endpoint.execute(command),
    pass: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    [Symbol.asyncDispose]: () => local.close(),
  });
}

const both = [
  ["in memory", inMemory],
  ["over HTTP", (rules?: readonly FaultRule[]) => overHttp("embedded", rules)],
] as const;

describe.each(both)("an endpoint %s", (_, open) => {
  /** Its rules are used up: the request has arrived. */
  const arrived = ({ faults }: Stand) => until(() => faults.list().length === 0, "the request");

  test.each<[rules: readonly FaultRule[], answer: unknown, executed: number]>([
    [[], 1, 1],
    [[{ fault: "down" }], "broken", 0],
    [[{ fault: "drop-request" }], undefined, 0],
    [[{ fault: "drop-request", reset: true }], "broken", 0],
    [[{ fault: "drop-reply" }], undefined, 1],
    [[{ fault: "drop-reply", reset: true }], "broken", 1],
    [[{ fault: "drop-reply" }, { fault: "duplicate" }], undefined, 2],
    [[{ fault: "duplicate" }], 2, 2],
    [[{ fault: "status" }], "http 500", 0],
    [[{ fault: "status", status: 429 }], "http 429", 0],
    [[{ fault: "status", status: 502, html: true }], "http 502", 0],
    [[{ fault: "down", command: "SET" }], 1, 1],
  ])("with %j answers %j, and has executed it %i times", async (rules, answer, executed) => {
    await using stand = await open(rules);
    const sent = stand.send("INCR", "k");
    // Silence is for the client to end.
    if (answer === undefined) {
      await until(async () => Number(await stand.look("GET", "k")) === executed, "the request");
      await stand.pass(20);
      expect(await isSettled(sent)).toBe(false);
      stand.abort();
    }
    expect(await sent).toBe(answer ?? "aborted");
    expect(Number(await stand.look("GET", "k"))).toBe(executed);
  });

  test("a delayed request is executed later, and others meanwhile; a delayed reply comes later", async () => {
    await using stand = await open([{ fault: "delay", ms: 100, times: 1 }]);
    const late = stand.send("INCR", "k");
    await arrived(stand);
    expect(await stand.send("SET", "k", 5)).toBe("OK");
    await stand.pass(100);
    expect(await late).toBe(6);
    stand.faults.add({ fault: "delay-reply", ms: 100, times: 1 });
    const executed = stand.send("INCR", "k");
    await until(async () => (await stand.look("GET", "k")) === "7", "the execution");
    expect(await isSettled(executed)).toBe(false);
    await stand.pass(100);
    expect(await executed).toBe(7);
  });

  test("a reordered request is executed after the next one, or after a second", async () => {
    await using stand = await open([{ fault: "reorder", times: 1 }]);
    const first = stand.send("SET", "k", "first");
    await arrived(stand);
    expect(await stand.send("SET", "k", "second")).toBe("OK");
    expect(await first).toBe("OK");
    expect(await stand.look("GET", "k")).toBe("first");
    stand.faults.add({ fault: "reorder", times: 1 });
    const only = stand.send("INCR", "n");
    await arrived(stand);
    expect(await stand.look("GET", "n")).toBeNull();
    await stand.pass(1_000);
    expect(await only).toBe(1);
  });

  test.each<FaultRule>([{ fault: "delay", ms: 200 }, { fault: "reorder" }])(
    "a crash ends a request with %j, which is never executed",
    async (rule) => {
      await using stand = await open([{ ...rule, times: 1 }]);
      const lost = stand.send("SET", "k", "never");
      await arrived(stand);
      await stand.stop();
      await stand.pass(1_100);
      expect(await lost).toBe("broken");
      await stand.start();
      expect(await stand.send("GET", "k")).toBeNull();
    },
  );
});

describe.each(both)("streams %s", (_, open) => {
  const listen = async (stand: Stand) => readEvents(await stand.subscribe());
  const publish = ({ look }: Stand, payload: string) => look("PUBLISH", "a", payload);
  const left = ({ look }: Stand) =>
    until(async () => String(await look("PUBSUB", "NUMSUB", "a")) === "a,0", "the end of the subscription");
  const confirmed = "data: subscribe,a,1";

  test("have the messages until the client leaves, and are billed at their begin and end", async () => {
    await using stand = await open();
    const events = await listen(stand);
    expect(await events.next()).toBe(confirmed);
    expect(await publish(stand, "grüß,\r\nand\nyou")).toBe(1);
    expect(await events.next()).toBe("data: message,a,grüß,\ndata: and\ndata: you");
    stand.abort();
    await left(stand);
    await until(() => stand.log().length === 2, "two entries of the log");
    expect(stand.log()).toMatchObject([
      { command: ["SUBSCRIBE", "a"], billed: 1 },
      { command: ["UNSUBSCRIBE", "a"], billed: 1 },
    ]);
  });

  test("break when the endpoint stops", async () => {
    await using stand = await open();
    const events = await listen(stand);
    await events.next();
    const next = expect(events.next()).rejects.toThrow();
    await stand.stop();
    await next;
  });

  test.each([false, true])("are cut after their confirmation, reset %s", async (reset) => {
    await using stand = await open([{ fault: "cut-stream", command: "SUBSCRIBE", ms: 30, reset, times: 1 }]);
    const events = await listen(stand);
    expect(await events.next()).toBe(confirmed);
    const end = events.next().catch(() => "broken");
    await stand.pass(30);
    expect(await end).toBe(reset ? "broken" : undefined);
    await left(stand);
  });

  test("are silent, lose messages, double them, and have them late", async () => {
    await using stand = await open([{ fault: "silent-stream", times: 1 }]);
    const [silent, events] = [await listen(stand), await listen(stand)];
    for (const each of [silent, events]) expect(await each.next()).toBe(confirmed);
    const passed = () => until(() => stand.faults.list().length === 0, "the message");
    stand.faults.add({ fault: "drop-message", times: 1 });
    expect(await publish(stand, "lost")).toBe(2);
    await passed();
    stand.faults.add({ fault: "duplicate-message", times: 1 });
    await publish(stand, "twice");
    expect([await events.next(), await events.next()]).toEqual(Array(2).fill("data: message,a,twice"));
    stand.faults.add({ fault: "delay-message", times: 1, ms: 50 });
    await publish(stand, "late");
    await passed();
    await publish(stand, "prompt");
    expect(await events.next()).toBe("data: message,a,prompt");
    await stand.pass(50);
    expect(await events.next()).toBe("data: message,a,late");
    expect(await isSettled(silent.next())).toBe(false);
  });

  test.each<FaultRule>([{ fault: "drop-reply", reset: true }, { fault: "duplicate" }])(
    "leave no subscription behind after %j",
    async (rule) => {
      await using stand = await open([rule]);
      await listen(stand).catch(() => undefined);
      expect(await publish(stand, "once")).toBe(rule.fault === "duplicate" ? 1 : 0);
      stand.abort();
      await left(stand);
    },
  );
});

test.each([
  ["in memory", inMemory],
  ...engines.map((engine) => [`on ${engine}`, () => overHttp(engine)] as const),
] as const)(
  "an endpoint %s that is stopped refuses connections, and starts with its data, or with nothing",
  async (_, open) => {
    await using stand = await open();
    await stand.send("SET", "k", "v", "PX", 600_000);
    const sha = String(await stand.send("SCRIPT", "LOAD", peekScript.source));
    await stand.stop();
    await stand.stop();
    expect(await stand.send("GET", "k")).toBe("broken");
    await stand.start();
    expect(await stand.send("GET", "k")).toBe("v");
    expect(await stand.look("PTTL", "k")).toBeGreaterThan(0);
    await stand.stop();
    await stand.start({ memory: "lost" });
    expect(await stand.send("GET", "k")).toBeNull();
    expect(await stand.send("SCRIPT", "EXISTS", sha)).toEqual([0]);
    // The lost data must not come back.
    await stand.stop();
    await stand.start();
    expect(await stand.send("GET", "k")).toBeNull();
  },
);

describe("rules", () => {
  test("of a command, in any case, apply as often as they say, by probability, and can be removed", () => {
    const draws = [0.5, 0.49];
    const faults = new Faults([], () => draws.shift() ?? expect.fail("a certain rule draws nothing"));
    const kinds = (command: string) => Object.keys(faults.plan(command));
    const rule = { fault: "down", command: "set", times: 2, probability: 0.5 } as const;
    faults.add({ ...rule, probability: 1 });
    expect([kinds("SET"), kinds("SETNX"), faults.list()]).toEqual([
      ["down"],
      [],
      [{ ...rule, probability: 1, times: 1 }],
    ]);
    expect([kinds("sEt"), kinds("SET"), faults.list()]).toEqual([["down"], [], []]);
    // A miss does not use up `times`.
    const remove = faults.add({ ...rule, times: 1 });
    expect([kinds("SET"), kinds("SET"), kinds("SET")]).toEqual([[], ["down"], []]);
    remove();
    faults.add({ fault: "reorder" });
    faults.add({ fault: "status" })();
    expect(kinds("SET")).toEqual(["reorder"]);
    faults.clear();
    expect(kinds("SET")).toEqual([]);
  });

  test("of delays add up; of other faults the first one counts; and streams have their own", () => {
    const rules: FaultRule[] = [
      { fault: "delay", ms: 5 },
      { fault: "delay", ms: [10, 20] },
      { fault: "status", status: 429 },
      { fault: "status", status: 503 },
      { fault: "cut-stream", command: "subscribe" },
      { fault: "drop-message" },
    ];
    const faults = new Faults(rules, () => 0.2);
    expect(faults.plan("SET")).toMatchObject({ delay: { ms: 17 }, status: { status: 429 } });
    expect(faults.plan("SUBSCRIBE", "stream")).toMatchObject({ "cut-stream": { ms: 1_000 } });
    expect([faults.plan("PSUBSCRIBE", "stream"), Object.keys(faults.plan("SUBSCRIBE", "message"))]).toEqual([
      {},
      ["drop-message"],
    ]);
  });

  test.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    [{ fault: "explode" }, RangeError, '"explode"'],
    [{ probability: 1 }, RangeError, "fault must be"],
    [null, TypeError, "a fault needs an object"],
    [{ fault: "down", probability: 1.5 }, RangeError, "1.5"],
    [{ fault: "down", times: 1.5 }, RangeError, "1.5"],
    [{ fault: "delay", ms: [5, 1] }, RangeError, "[5,1]"],
    [{ fault: "status", status: 200 }, RangeError, "200"],
    [{ fault: "status", html: "yes" }, TypeError, '"yes"'],
    [{ fault: "delay", milliseconds: 5 }, TypeError, '"milliseconds"'],
  ])("like %o are refused", (rule, kind, named) => {
    const faults = new Faults();
    const add = () => faults.add(rule as FaultRule);
    expect(add).toThrow(kind);
    expect(add).toThrow(named);
    expect(faults.list()).toEqual([]);
  });
});
