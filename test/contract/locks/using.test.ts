import { describe, expect, test, vi } from "vitest";
import { type Lock, LockLostError, type Routine } from "../../../src/index.ts";
import { oneClient, watch } from "../../support/virtual-client.ts";

// `using` and `tryAcquire` in virtual time: what they return or throw, and what becomes of the lock.

const free = [null, null, null];

describe("using", () => {
  test("with failOpen runs without a lock in an outage, and reports it", async () => {
    const { runtime, redlock, links, events } = oneClient();
    for (const each of links) each.fate = () => "refused";
    const call = watch(redlock.using("r", { failOpen: true, wait: 0 }, (lock) => [lock]));
    await runtime.advance(5_000);
    expect(call.value).toEqual([undefined]);
    expect(events.filter(({ type }) => type === "unguarded")).toMatchObject([
      { resources: ["r"], error: { code: "NO_QUORUM" } },
    ]);
  });

  test("with failOpen writes a line a minute where nobody hears events", async () => {
    const line = vi.spyOn(console, "warn").mockReturnValue();
    const { runtime, links, redlock } = oneClient({ onEvent: undefined });
    for (const each of links) each.fate = () => "refused";
    const calls = [1, 2].map((result) =>
      watch(redlock.using("r", { failOpen: true, wait: 0 }, () => result)),
    );
    await runtime.advance(5_000);
    expect(calls.map(({ value }) => value)).toEqual([1, 2]);
    expect(line).toHaveBeenCalledTimes(1);
    expect(String(line.mock.calls[0])).toMatch(/ran without protection \(failOpen\): no quorum/);
    line.mockRestore();
  });

  test("with failOpen never ignores a lock that is held, or that may be", async () => {
    const { runtime, put, redlock, links } = oneClient();
    put("r", [0, 1, 2], "somebody-else", 60_000);
    const using = () => watch(redlock.using("r", { failOpen: true, wait: 0 }, () => 1));
    const held = using();
    await runtime.advance(5_000);
    expect(held.error).toMatchObject({ code: "LOCK_HELD" });
    // One endpoint has failed, and the others could still have decided.
    put("r", [0], "somebody-else", 60_000);
    put("r", [1], "another", 1);
    links[2]!.fate = () => "refused";
    await runtime.advance(5_000);
    const split = using();
    await runtime.advance(5_000);
    expect(split.error).toMatchObject({ code: "NO_QUORUM" });
  });

  test.each<[what: string, client: object, call: object | undefined, lives: boolean]>([
    ["the lock by default", {}, undefined, true],
    ["the lock with other options", {}, { wait: 0 }, true],
    ["no lock where the client's options say so", { autoExtend: false }, undefined, false],
    ["the lock where the call says so", { autoExtend: false }, { autoExtend: true }, true],
    ["no lock where the call says so", { autoExtend: true }, { autoExtend: false }, false],
  ])("extends %s", async (_, defaults, options, lives) => {
    const { runtime, values, redlock } = oneClient({ ttl: 1_000, ...defaults });
    const routine: Routine<Lock, string> = async () => {
      await new Promise<void>((resolve) => void runtime.timer(3_000, resolve));
      return values("r").includes(null) ? "expired" : "held";
    };
    const call = watch(options ? redlock.using("r", options, routine) : redlock.using("r", routine));
    await runtime.advance(3_100);
    if (lives) expect(call.value).toBe("held");
    else expect(call.error).toBeInstanceOf(LockLostError);
    expect(values("r")).toEqual(free);
  });
});
