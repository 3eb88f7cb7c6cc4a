import { describe, expect, it } from "vitest";
import { readEvents } from "../../../test/support/event-reader.ts";
import { steppingRuntime } from "../../../test/support/stepping-runtime.ts";
import type { FaultRule } from "../../src/faults/faults.ts";
import { memoryEndpoint } from "../../src/memory/memory-endpoint.ts";

function setUp(faults: readonly FaultRule[] = []) {
  const runtime = steppingRuntime();
  const endpoint = memoryEndpoint({ runtime, faults });
  const controller = new AbortController();
  return {
    runtime,
    endpoint,
    controller,
    open: async (...command: string[]) => readEvents(await endpoint.stream(command, controller.signal)),
    publish: (payload: string) => endpoint.engine.execute(["PUBLISH", "a", payload]),
    subscribers: () => (endpoint.engine.execute(["PUBSUB", "NUMSUB", "a"]) as unknown[])[1],
  };
}

describe("memoryEndpoint.stream", () => {
  it("confirms, has the messages, and is billed at its begin and its end", async () => {
    const { endpoint, open, publish, subscribers } = setUp();
    const events = await open("SUBSCRIBE", "a", "b");
    expect([await events.next(), await events.next()]).toEqual([
      "data: subscribe,a,1",
      "data: subscribe,b,2",
    ]);
    expect(publish("grüß")).toBe(1);
    expect(await events.next()).toBe("data: message,a,grüß");
    await events.cancel();
    expect(subscribers()).toBe(0);
    expect(endpoint.log).toMatchObject([
      { command: ["SUBSCRIBE", "a", "b"], billed: 1, outcome: "replied" },
      { command: ["UNSUBSCRIBE", "a", "b"], billed: 1, outcome: "replied" },
    ]);
  });

  it.each(["abort", "stop"] as const)("breaks by %s, and counts no longer", async (how) => {
    const { endpoint, controller, open, subscribers } = setUp();
    const events = await open("SUBSCRIBE", "a");
    await events.next();
    const next = expect(events.next()).rejects.toMatchObject({
      kind: how === "abort" ? "timeout" : "network",
    });
    if (how === "abort") controller.abort();
    else endpoint.stop();
    await next;
    expect(subscribers()).toBe(0);
  });

  it("refuses another command, and no channel", async () => {
    const { open } = setUp();
    await expect(open("MONITOR")).rejects.toMatchObject({ kind: "redis" });
    await expect(open("SUBSCRIBE")).rejects.toThrow("wrong number of arguments for 'subscribe' command");
  });

  it("is late, cut, and has late messages in virtual time", async () => {
    const { runtime, open, publish, subscribers } = setUp([
      { fault: "delay", ms: 10 },
      { fault: "delay-message", ms: 30 },
      { fault: "cut-stream", ms: 100, times: 1 },
    ]);
    const opening = open("SUBSCRIBE", "a");
    expect(subscribers()).toBe(0);
    await runtime.advance(10);
    const events = await opening;
    await events.next();
    publish("x");
    const message = events.next();
    await runtime.advance(29);
    expect(await Promise.race([message, "not yet"])).toBe("not yet");
    await runtime.advance(1);
    expect(await message).toBe("data: message,a,x");
    publish("too late");
    await runtime.advance(70);
    expect([await events.next(), await events.next()]).toEqual(["data: message,a,too late", undefined]);
    expect([subscribers(), runtime.pending]).toEqual([0, 0]);
  });

  it.each<FaultRule>([
    { fault: "drop-reply", reset: true },
    { fault: "duplicate" },
    { fault: "delay-reply" },
  ])("leaves no subscription behind after %o and an abort", async (rule) => {
    const { runtime, controller, open, publish, subscribers } = setUp([rule]);
    const opening = Promise.allSettled([open("SUBSCRIBE", "a")]);
    expect(publish("x")).toBe(rule.fault === "drop-reply" ? 0 : 1);
    controller.abort();
    await runtime.advance(1_000);
    await opening;
    expect([subscribers(), runtime.pending]).toEqual([0, 0]);
  });
});
