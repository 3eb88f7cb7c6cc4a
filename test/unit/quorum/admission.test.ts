import { afterEach, describe, expect, test, vi } from "vitest";
import { VirtualTime } from "../../../local/src/memory/index.ts";
import { batchingSend } from "../../../src/endpoints/batch.ts";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { Admission } from "../../../src/quorum/admission.ts";

// Endpoints of which nothing is known take 100 commands.

const inBatches = (name: string): Endpoint => {
  const send = batchingSend(name, 6, () => new Promise(() => undefined));
  return { name, dialect: "redis", send };
};
const atOnce = (name: string): Endpoint => ({
  name,
  dialect: "redis",
  send: () => new Promise(() => undefined),
});

/** Does the work of one turn. */
async function take(
  admission: Admission,
  work: () => Promise<unknown>,
  patience: Parameters<Admission["wait"]>[0],
): Promise<void> {
  if (!admission.enter()) await admission.wait(patience);
  await work();
  admission.leave();
}

/** `count` turns that wait for 1 000 ms, and what has begun. */
function rig(endpoints: readonly Endpoint[], count: number, ms = 1_000) {
  const admission = new Admission(endpoints);
  const runtime = new VirtualTime();
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const controllers = Array.from({ length: count }, () => new AbortController());
  const turns = controllers.map(({ signal }, index) =>
    take(
      admission,
      () => {
        begun.push(index);
        return new Promise<void>((resolve) => ends.push(resolve));
      },
      { runtime, ms, signal },
    ),
  );
  return { admission, runtime, begun, ends, controllers, turns };
}

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("admission", () => {
  test("begin at once, as many as a quorum of the endpoints takes; the rest in their order, as others end", async () => {
    const endpoints = [inBatches("a"), inBatches("b"), atOnce("c")];
    const { runtime, begun, ends } = rig(endpoints, 103);
    expect(begun).toEqual(numbers(100));
    for (const end of ends.slice(0, 2)) end();
    await runtime.advance(0);
    expect(begun).toEqual(numbers(102));
  });

  test("begin without waiting where a quorum does not send in batches", () => {
    expect(rig([inBatches("a"), atOnce("b"), atOnce("c")], 200).begun).toHaveLength(200);
  });

  test("of releases begin before those that wait to acquire", async () => {
    const { admission, runtime, begun, ends } = rig([inBatches("a")], 101);
    const release = async () => void begun.push(-1);
    void take(admission, release, { runtime, ms: 1_000, isUrgent: true });
    ends[0]!();
    await runtime.advance(0);
    expect(begun).toEqual([...numbers(100), -1, 100]);
  });

  test("begin at the latest when their time is over, or their signal aborts", async () => {
    const { runtime, begun, controllers } = rig([inBatches("a")], 102);
    await runtime.advance(500);
    expect(begun).toHaveLength(100);
    controllers[101]!.abort();
    await runtime.advance(0);
    expect(begun).toEqual([...numbers(100), 101]);
    await runtime.advance(500);
    expect(begun).toEqual([...numbers(100), 101, 100]);
    expect(runtime.pending).toBe(0);
  });

  test("that may not wait begin at once", async () => {
    const { runtime, begun } = rig([inBatches("a")], 150, 0);
    await runtime.advance(0);
    expect(begun).toHaveLength(150);
  });

  test("on Workers never wait for another invocation", () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    expect(rig([inBatches("a")], 150).begun).toHaveLength(150);
  });
});
