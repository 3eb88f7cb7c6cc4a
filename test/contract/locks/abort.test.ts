import { describe, expect, test } from "vitest";
import type { AcquireOptions } from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { oneClient, virtualWorld, watch } from "../../support/virtual-client.ts";

// A caller's abort in virtual time: the call ends at once with its reason, and nothing of it stays. The timeout of a
// request is 100 ms.

const reasons = [new Error("the caller's own"), "a word", 0, undefined];

test("that comes before the call sends no request", async () => {
  for (const reason of reasons) {
    const signal = AbortSignal.abort(reason);
    const { redlock, links } = virtualWorld().client();
    const calls = [
      redlock.acquire("r", { signal }),
      redlock.tryAcquire("r", { signal }),
      redlock.using("r", { signal }, () => 1),
    ];
    for (const call of calls) expect(await rejection(call)).toBe(signal.reason);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  }
});

describe.each<AcquireOptions>([{}, { fencing: true }])("of an acquire, %o", (options) => {
  test("ends the wait for a holder, which keeps its lock", async () => {
    const { runtime, client, values, redlock, links } = oneClient({ backoff: () => 50_000, wait: 100_000 });
    const holder = await client().redlock.acquire("r");
    const caller = new AbortController();
    const call = watch(redlock.acquire("r", { ...options, signal: caller.signal }));
    await runtime.advance(10);
    caller.abort(reasons[2]);
    await runtime.advance(200);
    expect(call).toMatchObject({ settled: true, error: reasons[2] });
    expect([links.flatMap(({ sent }) => sent).length, await holder.verify()]).toEqual([3, true]);
    expect(values("r")).toEqual(new Array(3).fill(holder.token));
  });

  test("changes nothing after it", async () => {
    const caller = new AbortController();
    const lock = await virtualWorld()
      .client()
      .redlock.acquire("r", { ...options, signal: caller.signal });
    caller.abort();
    expect([lock.signal.aborted, await lock.verify(), await lock.release()]).toEqual([false, true, true]);
  });
});
