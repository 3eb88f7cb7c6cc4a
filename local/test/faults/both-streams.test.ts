import { describe, expect, test } from "vitest";
import { type EventReader, readEvents } from "../../../test/support/event-reader.ts";
import { isSettled } from "../../../test/support/outcomes.ts";
import { until } from "../../../test/support/until.ts";
import type { FaultRule } from "../../src/faults/faults.ts";
import { start } from "../../src/index.ts";
import { memoryEndpoint, VirtualTime } from "../../src/memory/index.ts";

// Streams of events with faults, at an endpoint in memory and over HTTP.

interface Stand {
  readonly faults: { add(rule: FaultRule): unknown; list(): readonly unknown[] };
  /** Subscribes to the channel `a`. */
  open(): Promise<EventReader & { readonly leave: () => void }>;
  execute(...command: string[]): Promise<unknown>;
  /** What was billed. */
  log(): readonly { readonly command: readonly unknown[]; readonly billed: number }[];
  pass(ms: number): Promise<void>;
  stop(): unknown;
  close(): Promise<void>;
}

async function inMemory(): Promise<Stand> {
  const runtime = new VirtualTime();
  const endpoint = memoryEndpoint({ runtime });
  return {
    faults: endpoint.faults,
    async open() {
      const controller = new AbortController();
      const body = await endpoint.subscribe("a", controller.signal);
      return { ...readEvents(body), leave: () => controller.abort() };
    },
    execute: async (...command) => endpoint.engine.execute(command),
    log: () => endpoint.log,
    pass: (ms) => runtime.advance(ms),
    stop: () => endpoint.stop(),
    close: async () => undefined,
  };
}

async function overHttp(): Promise<Stand> {
  const local = await start({ count: 1, engine: "embedded" });
  const [endpoint] = local.endpoints;
  const headers = { authorization: `Bearer ${endpoint.token}`, accept: "text/event-stream" };
  return {
    faults: endpoint.faults,
    async open() {
      const controller = new AbortController();
      const init = { method: "POST", headers, signal: controller.signal };
      const { body } = await fetch(`${endpoint.url}/subscribe/a`, init);
      return { ...readEvents(body), leave: () => controller.abort() };
    },
    execute: (...command) => endpoint.execute(command),
    log: () => endpoint.log.entries,
    pass: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    stop: () => endpoint.stop(),
    close: () => local.close(),
  };
}

const confirmed = "data: subscribe,a,1";

describe.each([
  ["in memory", inMemory],
  ["over HTTP", overHttp],
] as const)("streams %s", (_, openStand) => {
  async function on(rules: readonly FaultRule[], run: (stand: Stand) => Promise<void>): Promise<void> {
    const stand = await openStand();
    for (const rule of rules) stand.faults.add(rule);
    await run(stand).finally(() => stand.close());
  }
  const publish = ({ execute }: Stand, payload: string) => execute("PUBLISH", "a", payload);
  const left = ({ execute }: Stand) =>
    until(
      async () => String(await execute("PUBSUB", "NUMSUB", "a")) === "a,0",
      "the end of the subscription",
    );

  test("have the messages until the client leaves, and are billed at their begin and end", async () => {
    await on([], async (stand) => {
      const events = await stand.open();
      expect(await events.next()).toBe(confirmed);
      expect(await publish(stand, "grüß,\nyou")).toBe(1);
      expect(await events.next()).toBe("data: message,a,grüß,\ndata: you");
      events.leave();
      await left(stand);
      await until(() => stand.log().length === 2, "two entries of the log");
      expect(stand.log()).toMatchObject([
        { command: ["SUBSCRIBE", "a"], billed: 1 },
        { command: ["UNSUBSCRIBE", "a"], billed: 1 },
      ]);
    });
  });

  test("break when the endpoint stops", async () => {
    await on([], async (stand) => {
      const events = await stand.open();
      await events.next();
      const next = expect(events.next()).rejects.toThrow();
      await stand.stop();
      await next;
    });
  });

  test.each([false, true])("are cut after their confirmation, reset %s", async (reset) => {
    await on([{ fault: "cut-stream", command: "SUBSCRIBE", ms: 30, reset, times: 1 }], async (stand) => {
      const events = await stand.open();
      expect(await events.next()).toBe(confirmed);
      const end = events.next().catch(() => "broken");
      await stand.pass(30);
      expect(await end).toBe(reset ? "broken" : undefined);
      await left(stand);
    });
  });

  test("are silent, and count as subscribers", async () => {
    await on([{ fault: "silent-stream", times: 1 }], async (stand) => {
      const [silent, heard] = [await stand.open(), await stand.open()];
      for (const each of [silent, heard]) expect(await each.next()).toBe(confirmed);
      expect(await publish(stand, "hello")).toBe(2);
      expect(await heard.next()).toBe("data: message,a,hello");
      expect(await isSettled(silent.next())).toBe(false);
    });
  });

  test("lose messages, double them, and have them late", async () => {
    await on([{ fault: "drop-message", times: 1 }], async (stand) => {
      const events = await stand.open();
      await events.next();
      const passed = () => until(() => stand.faults.list().length === 0, "the message");
      await publish(stand, "lost");
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
    });
  });

  test.each<FaultRule>([{ fault: "drop-reply", reset: true }, { fault: "duplicate" }])(
    "leave no subscription behind after %j",
    async (rule) => {
      await on([rule], async (stand) => {
        const events = await stand.open().catch(() => undefined);
        expect(await publish(stand, "once")).toBe(rule.fault === "duplicate" ? 1 : 0);
        events?.leave();
        await left(stand);
      });
    },
  );
});
