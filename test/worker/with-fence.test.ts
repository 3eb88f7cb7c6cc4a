import { describe, expect, it } from "vitest";
import { LeaseLostError, type RunContext } from "../../src/idempotency/index.ts";
import { inspect, LockHeldError, LockLostError, Redlock, systemRuntime } from "../../src/index.ts";
import { memoryEndpoint } from "../../src/testing/index.ts";
import { withFence } from "../../worker/with-fence.ts";

/** A client whose clock can be advanced, and a run that can lose its lease. */
function setUp() {
  let ahead = 0;
  const runtime = { ...systemRuntime, monotonic: () => systemRuntime.monotonic() + ahead };
  const redlock = new Redlock({ endpoints: [memoryEndpoint()], runtime });
  const lease = new AbortController();
  const run: RunContext = { key: "msg_1", token: "t", signal: lease.signal, remaining: () => 1_000 };
  return {
    redlock,
    run,
    loseLease: () => lease.abort(new LeaseLostError("msg_1", "another run took over")),
    advanceClock: (ms: number) => {
      ahead += ms;
    },
  };
}

describe("withFence", () => {
  it("gives every write a newer fence, and frees the entity after it", async () => {
    const { redlock, run } = setUp();
    const write = async (fence: number) => ({ fence });
    const first = await withFence(redlock, "inv_1", { wait: 0, run }, write);
    const second = await withFence(redlock, "inv_1", { wait: 0, run }, write);
    expect(second.fence).toBeGreaterThan(first.fence);
    expect(await inspect(redlock, "inv_1")).toMatchObject({ held: false });
  });

  it("reports a successful write although the lock was lost before it ended", async () => {
    const { redlock, run, advanceClock } = setUp();
    const written = withFence(redlock, "inv_1", { wait: 0, run }, async (fence) => {
      advanceClock(60_000);
      return { fence };
    });
    expect((await written).fence).toBeGreaterThan(0);
  });

  it("reports the failure of a write, also if the lock was lost before it ended", async () => {
    const { redlock, run, advanceClock } = setUp();
    const failure = new Error("the fence is stale");
    const written = withFence(redlock, "inv_1", { wait: 0, run }, async () => {
      advanceClock(60_000);
      throw failure;
    });
    await expect(written).rejects.toBe(failure);
    expect(failure).not.toBeInstanceOf(LockLostError);
  });

  it("writes nothing if the run ended before the lock was acquired", async () => {
    const { redlock, run, loseLease } = setUp();
    const lock = await redlock.acquire("inv_1");
    let writes = 0;
    const written = withFence(redlock, "inv_1", { wait: 60_000, run }, async () => ({ writes: ++writes }));
    loseLease();
    await expect(written).rejects.toBeInstanceOf(LeaseLostError);
    await lock.release();
    expect(writes).toBe(0);
  });

  it("gives up if the entity stays locked", async () => {
    const { redlock, run } = setUp();
    await using _lock = await redlock.acquire("inv_1");
    let writes = 0;
    const written = withFence(redlock, "inv_1", { wait: 0, run }, async () => ({ writes: ++writes }));
    await expect(written).rejects.toBeInstanceOf(LockHeldError);
    expect(writes).toBe(0);
  });
});
