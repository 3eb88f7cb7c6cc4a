import { context, type Span, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { handoff, type RedlockOptions, resume } from "../../src/index.ts";
import { Semaphore } from "../../src/sync/index.ts";
import { virtualWorld, watch } from "../support/virtual-client.ts";
import { type OtelStand, otelStand } from "./stand.ts";

// The spans and metrics of locks, in virtual time: three endpoints, and a timeout of 100 ms.

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterAll(() => context.disable());

function open(options: Omit<RedlockOptions, "endpoints" | "runtime"> = {}, stand: OtelStand = otelStand()) {
  const world = virtualWorld();
  const { redlock, links } = world.client({ ...options, onEvent: stand.onEvent });
  return { ...world, redlock, links, stand };
}

const all = [0, 1, 2];

describe("a lock", () => {
  test("that is acquired, extended and released has two spans", async () => {
    const { redlock, runtime, stand } = open({ fencing: true, ttl: 5_000 });
    const lock = await redlock.acquire(["a", "b"]);
    expect(stand.spans().map(({ name }) => name)).toEqual(["redlock.acquire"]);
    await runtime.advance(2_000);
    await lock.extend();
    await lock.release();
    const costs = { "redlock.requests": 3, "redlock.commands": expect.any(Number) };
    const known = { "redlock.resource_count": 2, "redlock.fencing": true };
    expect(stand.spans()).toEqual([
      {
        name: "redlock.acquire",
        attributes: { ...known, ...costs, "redlock.rounds": 1, "redlock.outcome": "acquired" },
        error: undefined,
        events: [],
        parent: undefined,
      },
      {
        name: "redlock.hold",
        attributes: { ...known, "redlock.outcome": "released" },
        error: undefined,
        events: ["extended"],
        parent: undefined,
      },
    ]);
    expect(await stand.series("redlock.operations")).toEqual([
      [{ "redlock.operation": "acquire", "redlock.outcome": "acquired" }, 1],
      [{ "redlock.operation": "hold", "redlock.outcome": "released" }, 1],
    ]);
    const { sum, unit, boundaries } = await stand.histogram("redlock.hold.duration");
    expect([sum, unit]).toEqual([2, "s"]);
    expect(boundaries.at(-1)).toBe(300);
    expect(await stand.series("redlock.requests")).toEqual([
      [{ "redlock.operation": "acquire" }, 3],
      [{ "redlock.operation": "extend" }, 3],
      [{ "redlock.operation": "release" }, 3],
    ]);
  });

  test("that others hold is not an error; its rounds are events, and its wait is measured", async () => {
    const { redlock, runtime, put, stand } = open();
    put("r", all);
    const call = watch(redlock.acquire("r", { wait: 250, backoff: { min: 100, max: 100 } }));
    await runtime.advance(1_000);
    expect(call.error).toMatchObject({ code: "LOCK_HELD" });
    const [span] = stand.spans();
    expect(span).toMatchObject({ name: "redlock.acquire", error: undefined });
    expect(span?.attributes).toMatchObject({ "redlock.outcome": "held" });
    expect(span?.attributes["redlock.rounds"]).toBe(span?.events.length);
    expect(span?.attributes).not.toHaveProperty("error.type");
    expect(await stand.series("redlock.acquire.duration")).toEqual([[{ "redlock.outcome": "held" }, 1]]);
    expect((await stand.histogram("redlock.acquire.duration")).sum).toBeGreaterThanOrEqual(0.25);
  });

  test("that too few endpoints answer is an error, and so is each endpoint's failure", async () => {
    const { redlock, links, stand } = open({ wait: 0 });
    for (const link of links) link.fate = () => "refused";
    await expect(redlock.acquire("r")).rejects.toMatchObject({ code: "NO_QUORUM" });
    expect(stand.spans()).toMatchObject([
      { error: "NO_QUORUM", attributes: { "redlock.outcome": "unavailable", "error.type": "NO_QUORUM" } },
    ]);
    const errors = await stand.series("redlock.endpoint.errors");
    expect(errors.map(([attributes]) => attributes)).toEqual(
      ["e1", "e2", "e3"].map((name) => ({ "redlock.endpoint": name, "error.type": "network" })),
    );
    expect(await stand.series("redlock.operations")).toEqual([
      [{ "redlock.operation": "acquire", "redlock.outcome": "unavailable", "error.type": "NO_QUORUM" }, 1],
    ]);
  });

  test("that is lost, gone, not released for want of a quorum, or handed over", async () => {
    const { redlock, runtime, links, endpoints, stand } = open({ ttl: 1_000 });
    await redlock.acquire("expires");
    await runtime.advance(1_000);
    const gone = await redlock.acquire("gone");
    for (const { engine } of endpoints) engine.execute(["FLUSHALL"]);
    await gone.release();
    const silent = await redlock.acquire("silent");
    for (const link of links) link.fate = () => "refused";
    await expect(silent.release()).rejects.toThrow();
    for (const link of links) link.fate = () => "delivered";
    // Its end has been told; only the requests count.
    await silent.release();
    const json = await handoff(await redlock.acquire("given"));
    await (await resume(redlock, json)).release();
    const holds = stand.spans().filter(({ name }) => name === "redlock.hold");
    expect(holds.map(({ attributes, error }) => [attributes["redlock.outcome"], error])).toEqual([
      ["lost", "LOCK_LOST"],
      ["gone", "LOCK_LOST"],
      ["unreleased", "NO_QUORUM"],
      ["detached", undefined],
      ["released", undefined],
    ]);
    expect(holds[0]?.attributes["redlock.reason"]).toMatch(/^its validity ended \(ttl /);
    const released = (await stand.series("redlock.requests")).find(
      ([attributes]) => attributes["redlock.operation"] === "release",
    );
    expect(released?.[1]).toBe(4 * 3);
  });

  test("that is aborted has the error's name, not its message", async () => {
    const { redlock, put, stand } = open();
    put("r", all);
    const reason = new DOMException("told to the caller only", "AbortError");
    const call = redlock.acquire("r", { signal: AbortSignal.abort(reason) });
    await expect(call).rejects.toBe(reason);
    await expect(redlock.acquire("r", { deadline: 1 })).rejects.toThrow(RangeError);
    expect(stand.spans()).toMatchObject([
      { error: "AbortError", attributes: { "redlock.outcome": "aborted", "redlock.rounds": 0 } },
      { error: "RangeError", attributes: { "redlock.outcome": "aborted", "redlock.rounds": 0 } },
    ]);
    expect(await stand.exported()).not.toContain("told to the caller only");
  });

  test("of `using` that is lost while the routine runs has an error", async () => {
    const { redlock, runtime, stand } = open({ ttl: 1_000, autoExtend: false });
    const call = watch(
      redlock.using("r", () => new Promise((resolve) => runtime.timer(1_500, () => resolve(1)))),
    );
    await runtime.advance(2_000);
    expect(call.error).toMatchObject({ code: "LOCK_LOST" });
    const holds = stand.spans().filter(({ name }) => name === "redlock.hold");
    expect(holds).toMatchObject([{ error: "LOCK_LOST", attributes: { "redlock.outcome": "lost" } }]);
  });

  test("of a synchronizer is measured like any other", async () => {
    const stand = otelStand({ attributes: { use: "imports" } });
    const { redlock } = open({}, stand);
    await (await new Semaphore(redlock, "s", { limit: 2 }).acquire()).release();
    expect(stand.spans().map(({ name, attributes }) => [name, attributes.use])).toEqual([
      ["redlock.acquire", "imports"],
      ["redlock.hold", "imports"],
    ]);
    for (const [attributes] of await stand.series("redlock.operations"))
      expect(attributes.use).toBe("imports");
  });
});

describe("spans", () => {
  test("begin in the context of the caller", async () => {
    const { redlock, stand } = open();
    let parent: Span | undefined;
    await stand.tracer.startActiveSpan("request", async (span) => {
      parent = span;
      const lock = await redlock.acquire("r");
      // The hold's parent is the caller's span, too, whatever is active when it ends.
      await context.with(trace.deleteSpan(context.active()), () => lock.release());
      span.end();
    });
    const { spanId } = parent!.spanContext();
    expect(stand.spans().map((span) => [span.name, span.parent])).toEqual([
      ["redlock.acquire", spanId],
      ["redlock.hold", spanId],
      ["request", undefined],
    ]);
  });

  test("name resources only where they are asked to, and never a token", async () => {
    for (const names of [false, true]) {
      const stand = otelStand({ names });
      const { redlock } = open({}, stand);
      const lock = await redlock.acquire("invoice:42", { token: "the-owner's-secret", fencing: true });
      await lock.extend();
      await lock.release();
      await redlock.acquire("invoice:42", { ttl: 9 }).catch(() => undefined);
      const text = await stand.exported();
      expect(text.includes("invoice:42")).toBe(names);
      for (const secret of ["the-owner's-secret", lock.token, lock.value]) expect(text).not.toContain(secret);
      for (const { attributes } of stand.spans()) {
        expect(attributes["redlock.resources"]).toEqual(names ? ["invoice:42"] : undefined);
      }
    }
  });
});
