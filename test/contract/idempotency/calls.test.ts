import { describe, expect, test } from "vitest";
import { Idempotency, InProgressError } from "../../../src/idempotency/index.ts";
import { Redlock } from "../../../src/redlock.ts";
import type { Link } from "../../support/link.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { delays, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";
import { put, runner, silence, textsOf, ttls } from "../../support/virtual-runs.ts";

// The calls of idempotent runs in virtual time: what each of them waits for, how it ends, and what it leaves. The timeout
// of a request is 100 ms, the pause between two rounds 10 ms.

const never = () => expect.unreachable("nothing may run");

/** The name of the only record, once a run has begun and its process has died, at these endpoints. */
async function beginElsewhere(world: VirtualWorld, indices: readonly number[], lease = 30_000) {
  const other = runner(world, { lease });
  other.links.forEach((link, index) => {
    if (!indices.includes(index)) link.fate = () => "refused";
  });
  const call = watch(
    other.idempotency.run("key", () => {
      silence(other.links);
      return new Promise(() => undefined);
    }),
  );
  await other.started();
  return { ...other, call };
}

const pending = (token: string, startedAt: number, fingerprint = "-") =>
  `P1 ${token} ${Math.floor(startedAt)} ${fingerprint}`;

describe("a call that is aborted", () => {
  const reason = new Error("the client has gone");

  test("before it begins sends nothing", async () => {
    const { idempotency, sent } = runner(virtualWorld());
    const call = idempotency.run("key", { signal: AbortSignal.abort(reason) }, never);
    expect((await outcomeOf(call)).error).toBe(reason);
    expect(sent()).toBe(0);
  });

  test("while its handler runs goes on: the signal ends only the waiting", async () => {
    const controller = new AbortController();
    const { idempotency } = runner(virtualWorld());
    const outcome = await idempotency.run("key", { signal: controller.signal }, ({ signal }) => {
      controller.abort(reason);
      return signal.aborted;
    });
    expect(outcome).toEqual({ status: "executed", value: false });
  });

  test("while it waits ends at once, and leaves the other run alone", async () => {
    const world = virtualWorld();
    await beginElsewhere(world, [0, 1, 2]);
    const before = textsOf(world);
    const { idempotency, sent, started } = runner(world, { wait: 20_000, backoff: () => 10_000 });
    const controller = new AbortController();
    const call = watch(idempotency.run("key", { signal: controller.signal }, never));
    await started();
    await world.runtime.advance(100);
    const requests = sent();
    controller.abort(reason);
    await world.runtime.advance(0);
    expect(call.error).toBe(reason);
    await world.runtime.advance(1_000);
    expect(textsOf(world)).toEqual(before);
    expect(sent()).toBe(requests);
  });
});

test.each([
  [-600_000, 600_000],
  [600_000, -600_000],
])("clocks that are wrong by %i ms and %i ms change nothing", async (mine, others) => {
  const world = virtualWorld();
  const { runtime } = world;
  const shifted = (ms: number) => {
    const own = { ...runtime, now: () => runtime.now() + ms };
    const redlock = new Redlock({ endpoints: world.client().links, runtime: own });
    return new Idempotency(redlock, { lease: 20_000, retention: 86_400_000 });
  };
  const [first, second] = [shifted(mine), shifted(others)];
  const outcome = await first.run("key", async ({ remaining }) => {
    expect(remaining()).toBe(20_000 - 202);
    const { error } = await outcomeOf(second.run("key", never));
    expect(error).toBeInstanceOf(InProgressError);
    // The age of the run is that of the other's clock.
    const { retryAfter } = error as InProgressError;
    expect(retryAfter >= 1_000 && retryAfter <= 20_000).toBe(true);
    expect(ttls(world)).toEqual([20_000, 20_000, 20_000]);
    return "once";
  });
  expect(outcome.status).toBe("executed");
  expect(await second.run("key", never)).toEqual({ status: "replayed", value: "once" });
  expect(ttls(world)).toEqual(new Array(3).fill(86_400_000));
});

describe("waiting for another run", () => {
  async function waiting(options: Parameters<typeof runner>[1], deadline?: number) {
    const world = virtualWorld();
    await beginElsewhere(world, [0, 1, 2]);
    const start = world.runtime.now();
    const client = runner(world, options);
    const times: number[] = [];
    client.links[0]!.fate = (command) => {
      if (!command.includes("end")) times.push(world.runtime.now() - start);
      return "delivered";
    };
    const end = deadline === undefined ? {} : { deadline: start + deadline };
    const call = watch(client.idempotency.run("key", end, never));
    await client.started();
    return { ...world, ...client, call, times };
  }

  test("ends when its time is over, with a last round then: no pause is longer than what is left", async () => {
    const { call, runtime, times } = await waiting({ wait: 250, backoff: () => 200 });
    await runtime.advance(249);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(call.error).toBeInstanceOf(InProgressError);
    expect(times).toEqual([0, 200, 250]);
  });

  test("runs the handler once the other run's lease is over", async () => {
    const world = virtualWorld();
    await beginElsewhere(world, [0, 1, 2], 1_000);
    const { idempotency, started, events } = runner(world, { wait: 2_000 });
    const call = watch(idempotency.run("key", () => "mine"));
    await started();
    await world.runtime.advance(990);
    expect(call.settled).toBe(false);
    await world.runtime.advance(20);
    expect(call.value).toEqual({ status: "executed", value: "mine" });
    expect(events.map(({ type }) => type)).toEqual(["executed"]);
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
    const other = await beginElsewhere(world, [0, 1, 2]);
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
});
