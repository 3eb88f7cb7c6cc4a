import { describe, expect, test } from "vitest";
import { memberScript } from "../../../../src/sync/internal/member.lua.ts";
import { type MemberDetails, requestMember } from "../../../../src/sync/internal/members.ts";
import { scriptWorld } from "../../../support/virtual-script.ts";

// What depends on a single ms or is told to those that wait. The rest is in the tests of the locks.

const nonces = ["1", "2", "3"].map((digit) => `t${digit.repeat(32)}`) as [string, string, string];
const [n1, n2, n3] = nonces;

describe("a member", () => {
  /** A writer whose announcement lives for 100 ms. */
  const announced = { writer: "w1", left: "void:w1", expiry: 100 };
  const cellOf = (value: string, keys = ["members", "writers"]) => ({
    keys,
    value,
    tombstone: `void:${value}`,
  });

  async function newMembers() {
    const world = await scriptWorld(memberScript);
    return {
      ...world,
      acquire: (value: string, ttl: number, details: Partial<MemberDetails> = {}) =>
        requestMember(world.call(), "acquire", cellOf(value), { ttl, ...details }),
      release: async (value: string, writer?: string, keys?: string[]) => {
        const details = { ttl: 1, channel: "c", writer };
        return (await requestMember(world.call(), "release", cellOf(value, keys), details)).outcome;
      },
    };
  }

  test("is in the way until its last ms, and then no more", async () => {
    const { runtime, execute, acquire } = await newMembers();
    await acquire(`${n1}r`, 100);
    expect(execute("ZSCORE", "members", `${n1}r`)).toBe(`${1_700_000_000_999 + 100}`);
    await runtime.advance(99);
    expect(await acquire(`${n2}w1`, 100, announced)).toEqual({ outcome: "held", retryAfter: 1 });
    expect(execute("ZCARD", "writers")).toBe(1);
    // A second execution, after the tombstone of an announcement.
    execute("SET", `void:${n1}r`, 1);
    expect(await acquire(`${n1}r`, 100)).toEqual({ outcome: "granted" });
    // So that the key stays.
    await acquire(`${n3}r`, 1_000);
    await runtime.advance(1);
    expect(await acquire(`${n1}r`, 100)).toEqual({ outcome: "held", retryAfter: 0 });
  });

  test("that is there is not refused for an announcement that is about to expire", async () => {
    const { runtime, acquire } = await newMembers();
    await acquire(`${n1}r`, 1_000);
    await acquire(`${n2}w1`, 100, announced);
    await runtime.advance(99);
    expect(await acquire(`${n3}r`, 1_000)).toEqual({ outcome: "held", retryAfter: 1 });
    expect(await acquire(`${n1}r`, 1_000)).toEqual({ outcome: "granted" });
  });

  test("tells those that wait when none is left, to the ms", async () => {
    for (const [ms, messages] of [
      [99, []],
      [100, ["free"]],
    ] as const) {
      const { runtime, listen, acquire, release } = await newMembers();
      await acquire(`${n1}a`, 100);
      await acquire(`${n2}a`, 1_000);
      const heard = listen("c");
      await runtime.advance(ms);
      expect([await release(`${n2}a`, "", ["members"]), heard()]).toEqual(["granted", messages]);
    }
    const { release } = await newMembers();
    expect(await release(`${n1}a`, "", ["members"]), "nobody listens").toBe("lost");
  });

  test("tells writers when it was the last one, and readers when no writer waits", async () => {
    const { listen, acquire, release } = await newMembers();
    const heard = listen("c");
    for (const nonce of nonces) await acquire(`${nonce}r`, 1_000);
    expect([await release(`${n1}r`), heard()], "others are there").toEqual(["granted", []]);
    await acquire(`${n1}w1`, 1_000, announced);
    expect([await release(`${n2}r`), heard()], "a writer waits for others").toEqual(["granted", []]);
    expect([await release("w1", "w1"), heard()], "it has given up").toEqual(["lost", ["r"]]);
    await acquire(`${n1}w2`, 1_000, { ...announced, writer: "w2", left: "void:w2" });
    expect([await release(`${n3}r`), heard()], "none is left").toEqual(["granted", ["free"]]);
  });

  test("is not refused again where a client in between repeats its acquire, though its writer gave up", async () => {
    const { acquire, execute, release } = await newMembers();
    await acquire(`${n1}w1`, 1_000, announced);
    execute("SET", "void:w1", 1);
    expect(await acquire(`${n1}w1`, 1_000, announced)).toEqual({ outcome: "granted" });
    expect(execute("ZCARD", "writers")).toBe(0);
    expect(await release(`${n1}w1`)).toBe("granted");
    expect((await acquire(`${n1}w1`, 1_000, announced)).outcome).toBe("held");
  });
});
