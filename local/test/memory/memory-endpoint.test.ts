import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { EndpointError } from "../../../src/errors/errors.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { type MemoryEndpointOptions, memoryEndpoint } from "../../src/memory/memory-endpoint.ts";
import { VirtualTime } from "../../src/memory/virtual-time.ts";

/** Virtual time with random numbers of the test's choice. */
class ManualTime extends VirtualTime {
  draws: number[] = [];
  override random = (): number => this.draws.shift() ?? 0;
}

/** Waits until promises that need no timer have settled. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
}

function setUp(options: MemoryEndpointOptions = {}) {
  const runtime = new ManualTime();
  const endpoint = memoryEndpoint({ runtime, ...options });
  const controller = new AbortController();
  const send = (...command: (string | number)[]) => {
    const sent = endpoint.send(command, controller.signal);
    // Some are looked at later only.
    sent.catch(() => undefined);
    return sent;
  };
  return { runtime, endpoint, controller, send };
}

/** The current state of a promise: "pending", its value, or the kind of its error. */
async function clientStateOf(promise: Promise<unknown>): Promise<unknown> {
  let state: unknown = "pending";
  promise.then(
    (value) => {
      state = { value };
    },
    (error: EndpointError) => {
      state = { kind: error.kind, status: error.status };
    },
  );
  await settle();
  return state;
}

describe("memoryEndpoint", () => {
  it("is an endpoint that answers like Redis", async () => {
    const { endpoint, send } = setUp({ name: "a" });
    expect(endpoint).toMatchObject({ name: "a", dialect: "upstash", exactReplies: true });
    expect(memoryEndpoint()).toMatchObject({ name: "memory", dialect: "upstash" });
    await expect(send("SET", "k", "v", "NX", "PX", 1000)).resolves.toBe("OK");
    await expect(send("SET", "k", "w", "NX")).resolves.toBeNull();
    await expect(send("MGET", "k", "none")).resolves.toEqual(["v", null]);
    expect(endpoint.engine.execute(["GET", "k"])).toBe("v");
  });

  it("rejects Redis's errors without the arguments, which may be secret", async () => {
    const { endpoint, send } = setUp({ name: "a" });
    const error = await send("NOPE", "very-secret-token").catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EndpointError);
    expect(error).toMatchObject({ endpoint: "a", kind: "redis", status: undefined });
    expect((error as Error).message).toMatch(/^a: Redis refused: ERR unknown command 'NOPE': /);
    expect((error as Error).message).not.toContain("secret");
    expect(endpoint.log).toMatchObject([{ outcome: "refused", billed: 0 }]);
  });

  it("logs every request with what it is billed", async () => {
    const { runtime, endpoint, send } = setUp();
    await send("SET", "k", "v");
    await runtime.advance(5);
    await send("EVAL", peekScript.source, 1, "k");
    expect(endpoint.log).toEqual([
      { command: ["SET", "k", "v"], billed: 1, at: runtime.now() - 5, outcome: "replied" },
      {
        command: ["EVAL", peekScript.source, 1, "k"],
        billed: 3,
        at: runtime.now(),
        outcome: "replied",
      },
    ]);
  });
});

describe("memoryEndpoint: abort", () => {
  it("sends nothing if the signal has already aborted", async () => {
    const { endpoint, controller, send } = setUp();
    controller.abort(new Error("why"));
    const error = await send("SET", "k", "v").catch((reason: unknown) => reason);
    expect(error).toMatchObject({ kind: "timeout", cause: controller.signal.reason });
    expect(endpoint.log).toEqual([]);
  });

  it("rejects, but does not cancel the request", async () => {
    const { runtime, endpoint, controller, send } = setUp({ faults: [{ fault: "delay", ms: 100 }] });
    const sent = send("SET", "k", "v");
    expect(await clientStateOf(sent)).toBe("pending");
    controller.abort();
    expect(await clientStateOf(sent)).toEqual({ kind: "timeout", status: undefined });
    expect(endpoint.engine.execute(["GET", "k"])).toBeNull();
    await runtime.advance(100);
    expect(endpoint.engine.execute(["GET", "k"])).toBe("v");
    expect(await clientStateOf(sent)).toEqual({ kind: "timeout", status: undefined });
  });

  it("leaves no listener on the signal, however a request ends", async () => {
    const { runtime, endpoint } = setUp();
    const { signal } = new AbortController();
    const listeners = () => getEventListeners(signal, "abort").length;
    await endpoint.send(["PING"], signal);
    await endpoint.send(["NOPE"], signal).catch(() => undefined);
    endpoint.faults.add({ fault: "status" });
    await endpoint.send(["PING"], signal).catch(() => undefined);
    endpoint.faults.clear();
    endpoint.faults.add({ fault: "delay" });
    const delayed = endpoint.send(["PING"], signal);
    expect(listeners()).toBe(1);
    await runtime.advance(1000);
    await delayed;
    expect(listeners()).toBe(0);
  });
});

describe("memoryEndpoint: streams", () => {
  it("leaves no subscription behind whose confirmation comes after the abort", async () => {
    const { endpoint, runtime, controller } = setUp({ faults: [{ fault: "delay-reply", ms: 10 }] });
    const opening = endpoint.subscribe("a", controller.signal).catch((error: EndpointError) => error.kind);
    expect(endpoint.engine.execute(["PUBLISH", "a", "x"])).toBe(1);
    controller.abort();
    await runtime.advance(10);
    expect([await opening, endpoint.engine.execute(["PUBLISH", "a", "x"])]).toEqual(["timeout", 0]);
  });
});

describe("memoryEndpoint: clockOffset", () => {
  it("makes keys expire by a clock that is ahead, behind or drifting", async () => {
    const { runtime, endpoint, send } = setUp({ clockOffset: -400 });
    await send("SET", "k", "v", "PX", 1000);
    await runtime.advance(500);
    await expect(send("PTTL", "k")).resolves.toBe(500);
    endpoint.clockOffset = 0;
    await expect(send("PTTL", "k")).resolves.toBe(100);
    const begin = runtime.elapsed;
    endpoint.clockOffset = () => (runtime.elapsed - begin) / 10;
    await runtime.advance(50);
    await expect(send("PTTL", "k")).resolves.toBe(45);
    endpoint.clockOffset = 100;
    await expect(send("GET", "k")).resolves.toBeNull();
  });
});
