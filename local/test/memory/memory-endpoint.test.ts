import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import { EndpointError } from "../../../src/errors.ts";
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

  it("answers later than send returns, with and without an error", async () => {
    const { send } = setUp();
    const order: string[] = [];
    const answered = send("PING").then(() => order.push("answered"));
    const refused = send("NOPE").catch(() => order.push("refused"));
    order.push("sent");
    await Promise.all([answered, refused]);
    expect(order).toEqual(["sent", "answered", "refused"]);
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

describe("memoryEndpoint: faults", () => {
  it.each([
    ["down", { fault: "down" }, { kind: "network", status: undefined }],
    [
      "a broken connection before",
      { fault: "drop-request", reset: true },
      { kind: "network", status: undefined },
    ],
    ["an HTTP error", { fault: "status", status: 429 }, { kind: "http", status: 429 }],
    ["an HTML page", { fault: "status", status: 502, html: true }, { kind: "http", status: 502 }],
  ] as const)("%s executes nothing", async (_, fault, state) => {
    const { endpoint, send } = setUp({ faults: [fault] });
    expect(await clientStateOf(send("SET", "k", "v"))).toEqual(state);
    expect(endpoint.engine.execute(["GET", "k"])).toBeNull();
    expect(endpoint.log).toMatchObject([{ outcome: "not executed", billed: 0 }]);
  });

  it("drop-request: never executed, never answered", async () => {
    const { runtime, endpoint, controller, send } = setUp({ faults: [{ fault: "drop-request" }] });
    const sent = send("SET", "k", "v");
    await runtime.advance(3_600_000);
    expect(await clientStateOf(sent)).toBe("pending");
    expect(endpoint.engine.execute(["GET", "k"])).toBeNull();
    controller.abort();
    expect(await clientStateOf(sent)).toEqual({ kind: "timeout", status: undefined });
  });

  it("drop-reply: executed, and the reply is lost", async () => {
    const { endpoint, send } = setUp({ faults: [{ fault: "drop-reply", times: 1 }] });
    expect(await clientStateOf(send("SET", "k", "v"))).toBe("pending");
    expect(endpoint.engine.execute(["GET", "k"])).toBe("v");
    expect(endpoint.log).toMatchObject([{ outcome: "reply lost", billed: 1 }]);
    endpoint.faults.add({ fault: "drop-reply", reset: true });
    expect(await clientStateOf(send("DEL", "k"))).toEqual({ kind: "network", status: undefined });
    expect(endpoint.engine.execute(["GET", "k"])).toBeNull();
  });

  it("delay: executed later; delay-reply: executed at once, answered later", async () => {
    const { runtime, endpoint, send } = setUp({
      faults: [
        { fault: "delay", ms: 100, command: "SET" },
        { fault: "delay-reply", ms: [100, 300], command: "DEL" },
      ],
    });
    const set = send("SET", "k", "v");
    await runtime.advance(99);
    expect(endpoint.engine.execute(["GET", "k"])).toBeNull();
    await runtime.advance(1);
    expect(await clientStateOf(set)).toEqual({ value: "OK" });

    runtime.draws = [0.5];
    const del = send("DEL", "k");
    expect(endpoint.engine.execute(["GET", "k"])).toBeNull();
    await runtime.advance(199);
    expect(await clientStateOf(del)).toBe("pending");
    await runtime.advance(1);
    expect(await clientStateOf(del)).toEqual({ value: 1 });
  });

  it("reorder: executed after the next one", async () => {
    const { runtime, endpoint, send } = setUp({ faults: [{ fault: "reorder", times: 1 }] });
    const overtaken = send("SET", "k", "first");
    expect(await clientStateOf(overtaken)).toBe("pending");
    expect(await clientStateOf(send("SET", "k", "second"))).toEqual({ value: "OK" });
    expect(await clientStateOf(overtaken)).toEqual({ value: "OK" });
    expect(endpoint.engine.execute(["GET", "k"])).toBe("first");
    expect(runtime.pending).toBe(0);
  });

  it("reorder: executed after a second without a next request", async () => {
    const { runtime, endpoint, send } = setUp({ faults: [{ fault: "reorder" }] });
    const overtaken = send("INCR", "k");
    await runtime.advance(999);
    expect(await clientStateOf(overtaken)).toBe("pending");
    await runtime.advance(1);
    expect(await clientStateOf(overtaken)).toEqual({ value: 1 });
    endpoint.faults.clear();
    await send("PING");
    expect(endpoint.engine.execute(["GET", "k"])).toBe("1");
  });

  it("duplicate: executed twice, the second reply is sent", async () => {
    const { endpoint, send } = setUp({ faults: [{ fault: "duplicate", times: 1 }] });
    expect(await clientStateOf(send("SET", "k", "v", "NX"))).toEqual({ value: null });
    expect(endpoint.log).toMatchObject([{ billed: 2 }]);
  });
});

describe("memoryEndpoint: crash and restart", () => {
  it("refuses connections while it is stopped, and keeps its data", async () => {
    const { endpoint, send } = setUp();
    await send("SET", "k", "v");
    endpoint.stop();
    expect(await clientStateOf(send("GET", "k"))).toEqual({ kind: "network", status: undefined });
    endpoint.start();
    expect(await clientStateOf(send("GET", "k"))).toEqual({ value: "v" });
  });

  it("starts without its memory", async () => {
    const { endpoint, send } = setUp();
    await send("SET", "k", "v");
    const sha = await send("SCRIPT", "LOAD", peekScript.source);
    endpoint.stop();
    endpoint.start({ memory: "lost" });
    expect(await clientStateOf(send("GET", "k"))).toEqual({ value: null });
    await expect(send("EVALSHA", String(sha), 0)).rejects.toThrow(/NOSCRIPT/);
  });

  it("does not execute requests that arrive while it is stopped", async () => {
    const { runtime, endpoint, send } = setUp({ faults: [{ fault: "delay", ms: 100 }] });
    const lost = send("SET", "k", "v");
    endpoint.stop();
    await runtime.advance(100);
    expect(await clientStateOf(lost)).toEqual({ kind: "network", status: undefined });
    const late = send("SET", "k", "w");
    endpoint.start();
    await runtime.advance(100);
    expect(await clientStateOf(late)).toEqual({ value: "OK" });
  });

  it("does not execute an overtaken request after a crash", async () => {
    const { runtime, endpoint, send } = setUp({ faults: [{ fault: "reorder", times: 1 }] });
    const overtaken = send("SET", "k", "v");
    endpoint.stop();
    await runtime.advance(1000);
    expect(await clientStateOf(overtaken)).toEqual({ kind: "network", status: undefined });
    expect(endpoint.log).toMatchObject([{ outcome: "not executed" }]);
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
