import { describe, expect, test } from "vitest";
import { InProgressError } from "../../../src/idempotency/index.ts";
import { QuorumError } from "../../../src/index.ts";
import type { Link } from "../../support/link.ts";
import { delays, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { never, put, runner, running, silence, textsOf } from "../../support/virtual-runs.ts";

// The calls of idempotent runs in virtual time: what each of them waits for, how it ends, and what it leaves. The timeout
// of a request is 100 ms, the pause between two rounds 10 ms.

const pending = (token: string, startedAt: number, fingerprint = "-") =>
  `P1 ${token} ${Math.floor(startedAt)} ${fingerprint}`;

describe("a call that is aborted", () => {
  const reason = new Error("the client has gone");

  test("while its handler runs goes on: the signal ends only the waiting", async () => {
    const controller = new AbortController();
    const { idempotency } = runner(virtualWorld());
    const outcome = await idempotency.run("key", { signal: controller.signal }, ({ signal }) => {
      controller.abort(reason);
      return signal.aborted;
    });
    expect(outcome).toEqual({ status: "executed", value: false });
  });
});

describe("a split vote", () => {
  const start = 1_700_000_000_000;

  test("is tried again for two timeouts, and then busy for about a timeout", async () => {
    const world = virtualWorld();
    await put(world, [pending("ta", start), pending("tb", start)]);
    const { idempotency, started, sent, events } = runner(world);
    const call = watch(idempotency.run("key", never));
    await started();
    await world.runtime.advance(199);
    expect(call.settled).toBe(false);
    expect(sent()).toBeGreaterThan(30);
    await world.runtime.advance(1);
    expect(call.error).toBeInstanceOf(InProgressError);
    expect((call.error as InProgressError).retryAfter).toBe(100);
    expect(events.map(({ type }) => type)).toEqual(["busy"]);
    // Its own part is free again.
    expect(textsOf(world)[2]).toBe(null);
  });
});

test("the slowest endpoint is waited for where it may show that one run has a quorum", async () => {
  const world = virtualWorld({ dialect: "upstash" });
  const start = world.runtime.now();
  await put(world, [pending("ta", start), pending("tb", start), pending("ta", start)]);
  const { idempotency, links, started } = runner(world);
  links[2]!.fate = (command) => (command.includes("NX") ? delays(world.runtime).slow(50) : "delivered");
  const call = watch(idempotency.run("key", never));
  await started();
  await world.runtime.advance(49);
  expect(call.settled).toBe(false);
  await world.runtime.advance(1);
  // By the lease of that run, and not about a timeout.
  expect(call.error).toMatchObject({ code: "IN_PROGRESS", retryAfter: 28_950 });
});

describe("waitUntil", () => {
  const isSlow = (links: readonly Link[], ms: number, world: VirtualWorld) => {
    const { slow } = delays(world.runtime);
    for (const each of links) each.fate = () => slow(ms);
  };

  test.each([true, false])("%s: what a failed run waits for", async (kept) => {
    const world = virtualWorld();
    const background: Promise<unknown>[] = [];
    const { idempotency, links, started } = runner(
      world,
      kept ? { waitUntil: (work) => background.push(work) } : {},
    );
    const failure = new Error("declined");
    const call = watch(
      idempotency.run("key", () => {
        isSlow(links, 50, world);
        throw failure;
      }),
    );
    await started();
    expect(call.error).toBe(kept ? failure : undefined);
    const work = watch(Promise.all(background));
    await world.runtime.advance(49);
    expect(call.settled).toBe(kept);
    if (kept) expect(work.settled).toBe(false);
    await world.runtime.advance(1);
    expect([call.error, work.settled]).toEqual([failure, true]);
  });
});

describe("failOpen", () => {
  const open = { failOpen: true } as const;

  test("runs the handler without protection in an outage, and reports it", async () => {
    const world = virtualWorld();
    const { idempotency, links, events, started } = runner(world);
    silence(links);
    const call = watch(
      idempotency.run("key", { ...open, lock: "a" }, ({ fence, remaining, token }) => [
        fence,
        remaining(),
        token.length,
      ]),
    );
    await started();
    await world.runtime.advance(5_000);
    // Infinity has no JSON, so the result could not be stored either: it is the handler's own.
    expect(call.value).toEqual({
      status: "executed",
      value: [undefined, Infinity, 33],
      unstored: "no-quorum",
    });
    expect(events).toMatchObject([{ type: "unguarded", key: "key", error: { code: "NO_QUORUM" } }]);
  });

  test("never ignores a run that is under way, or a failure of a minority", async () => {
    const world = virtualWorld();
    const other = await running(runner(world));
    for (const silent of [[], [2]]) {
      const { idempotency, links, started } = runner(world);
      silence(silent.map((index) => links[index]!));
      const call = watch(idempotency.run("key", open, never));
      await started();
      await world.runtime.advance(5_000);
      expect(call.error).toBeInstanceOf(InProgressError);
    }
    expect(other.call.settled).toBe(false);
  });

  test("never runs again what one endpoint knows to be complete", async () => {
    const world = virtualWorld();
    await runner(world).idempotency.run("key", () => "done");
    const { idempotency, links, started } = runner(world);
    silence(links.slice(1));
    const call = watch(idempotency.run("key", open, never));
    await started();
    await world.runtime.advance(5_000);
    expect(call.error).toBeInstanceOf(QuorumError);
  });
});
