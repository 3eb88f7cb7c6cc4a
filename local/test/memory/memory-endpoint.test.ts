import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { EndpointError } from "../../../src/errors/errors.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { isSettled } from "../../../test/support/outcomes.ts";
import { type MemoryEndpointOptions, memoryEndpoint } from "../../src/memory/memory-endpoint.ts";
import { VirtualTime } from "../../src/memory/virtual-time.ts";

// What is the memory endpoint's own: faults.test.ts shows its faults and streams.

function setUp(options: MemoryEndpointOptions = {}) {
  const runtime = new VirtualTime();
  const endpoint = memoryEndpoint({ runtime, ...options });
  const controller = new AbortController();
  const send = (...command: (string | number)[]) => endpoint.send(command, controller.signal);
  const failure = (sent: Promise<unknown>) => sent.catch((error: EndpointError) => error);
  return { runtime, endpoint, controller, send, failure };
}

test("it is an endpoint that answers like Redis, and logs every request with what it is billed", async () => {
  const { runtime, endpoint, send } = setUp();
  expect(endpoint).toMatchObject({ name: "memory", dialect: "upstash", exactReplies: true });
  expect(await send("SET", "k", "v", "NX", "PX", 1000)).toBe("OK");
  await runtime.advance(5);
  expect(await send("EVAL", peekScript.source, 1, "k")).toEqual(["v", 995, ""]);
  expect(endpoint.engine.execute(["GET", "k"])).toBe("v");
  const [at, outcome] = [runtime.now(), "replied"];
  expect(endpoint.log).toEqual([
    { command: ["SET", "k", "v", "NX", "PX", 1000], billed: 1, at: at - 5, outcome },
    { command: ["EVAL", peekScript.source, 1, "k"], billed: 3, at, outcome },
  ]);
});

test("it rejects with Redis's errors without the arguments, which may be secret", async () => {
  const { endpoint, send, failure } = setUp({ name: "a" });
  const error = await failure(send("NOPE", "very-secret-token"));
  expect(error).toBeInstanceOf(EndpointError);
  expect(error).toMatchObject({ endpoint: "a", kind: "redis" });
  expect((error as Error).message).toMatch(/^a: Redis refused: ERR unknown command 'NOPE': /);
  expect((error as Error).message).not.toContain("secret");
  expect(endpoint.log).toMatchObject([{ outcome: "refused", billed: 0 }]);
});

test("an aborted request is not sent, or goes on without its client", async () => {
  const { runtime, endpoint, controller, send, failure } = setUp({ faults: [{ fault: "delay", ms: 100 }] });
  const sent = failure(send("SET", "k", "v"));
  expect(await isSettled(sent)).toBe(false);
  controller.abort(new Error("why"));
  expect(await sent).toMatchObject({ kind: "timeout", cause: controller.signal.reason });
  await runtime.advance(100);
  expect(endpoint.engine.execute(["GET", "k"])).toBe("v");
  expect(await failure(send("SET", "k", "w"))).toMatchObject({ kind: "timeout" });
  expect(endpoint.log).toHaveLength(1);
});

test("it leaves no listener on the signal, however a request ends", async () => {
  const { endpoint, controller, send, failure } = setUp();
  await send("PING");
  await failure(send("NOPE"));
  endpoint.faults.add({ fault: "status" });
  await failure(send("PING"));
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
});

test("it leaves no subscription behind whose confirmation comes after the abort", async () => {
  const { endpoint, runtime, controller, failure } = setUp({ faults: [{ fault: "delay-reply", ms: 10 }] });
  const opening = failure(endpoint.subscribe("a", controller.signal));
  expect(endpoint.engine.execute(["PUBLISH", "a", "x"])).toBe(1);
  controller.abort();
  await runtime.advance(10);
  expect(await opening).toMatchObject({ kind: "timeout" });
  expect(endpoint.engine.execute(["PUBLISH", "a", "x"])).toBe(0);
});

test("keys expire by a clock that is ahead, behind or drifting", async () => {
  const { runtime, endpoint, send } = setUp({ clockOffset: -400 });
  await send("SET", "k", "v", "PX", 1000);
  await runtime.advance(500);
  expect(await send("PTTL", "k")).toBe(500);
  endpoint.clockOffset = 0;
  expect(await send("PTTL", "k")).toBe(100);
  const begin = runtime.elapsed;
  endpoint.clockOffset = () => (runtime.elapsed - begin) / 10;
  await runtime.advance(50);
  expect(await send("PTTL", "k")).toBe(45);
});
