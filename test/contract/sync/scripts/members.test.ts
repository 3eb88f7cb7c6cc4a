import { describe, expect, test } from "vitest";
import { memberScript } from "../../../../src/sync/internal/member.lua.ts";
import { requestMember } from "../../../../src/sync/internal/members.ts";
import { scriptWorld } from "../../../support/virtual-script.ts";

// What depends on a single ms or is told to those that wait. The rest is in the tests of the locks.

const nonces = ["1", "2", "3"].map((digit) => `t${digit.repeat(32)}`) as [string, string, string];
const [n1, n2, n3] = nonces;

describe("a member", () => {
  async function newMembers() {
    const world = await scriptWorld(memberScript);
    const request = (keys: readonly string[], value: string, args: readonly (string | number)[]) =>
      requestMember(world.call(), ["members", `void:${value}`, ...keys], args);
    return {
      ...world,
      acquire: (value: string, ttl: number) => request(["writers"], value, ["acquire", value, ttl, "", 0, 0]),
      /** A writer whose announcement lives for 100 ms. */
      write: (value: string, ttl: number, writer = "w1") =>
        request(["writers", `void:${writer}`], value, ["acquire", value, ttl, writer, 100, 0]),
      release: async (value: string, writer = "", keys = ["writers"]) =>
        (await request(keys, value, ["release", value, 1, writer, 0, 0, "c"])).outcome,
    };
  }

  test("is in the way until its last ms, and then no more", async () => {
    const { runtime, execute, acquire, write } = await newMembers();
    await acquire(`${n1}r`, 100);
    expect(execute("ZSCORE", "members", `${n1}r`)).toBe(`${1_700_000_000_999 + 100}`);
    await runtime.advance(99);
    expect(await write(`${n2}w1`, 100)).toEqual({ outcome: "held", retryAfter: 1 });
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
    const { runtime, acquire, write } = await newMembers();
    await acquire(`${n1}r`, 1_000);
    await write(`${n2}w1`, 100);
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
      expect([await release(`${n2}a`, "", []), heard()]).toEqual(["granted", messages]);
    }
    const { release } = await newMembers();
    expect(await release(`${n1}a`, "", []), "nobody listens").toBe("lost");
  });

  test("tells writers when it was the last one, and readers when no writer waits", async () => {
    const { listen, acquire, write, release } = await newMembers();
    const heard = listen("c");
    for (const nonce of nonces) await acquire(`${nonce}r`, 1_000);
    expect([await release(`${n1}r`), heard()], "others are there").toEqual(["granted", []]);
    await write(`${n1}w1`, 1_000);
    expect([await release(`${n2}r`), heard()], "a writer waits for others").toEqual(["granted", []]);
    expect([await release("w1", "w1"), heard()], "it has given up").toEqual(["lost", ["r"]]);
    await write(`${n1}w2`, 1_000, "w2");
    expect([await release(`${n3}r`), heard()], "none is left").toEqual(["granted", ["free"]]);
  });

  test("is not refused again where a client in between repeats its acquire, though its writer gave up", async () => {
    const { write, execute, release } = await newMembers();
    await write(`${n1}w1`, 1_000);
    execute("SET", "void:w1", 1);
    expect(await write(`${n1}w1`, 1_000)).toEqual({ outcome: "granted" });
    expect(execute("ZCARD", "writers")).toBe(0);
    expect(await release(`${n1}w1`)).toBe("granted");
    expect((await write(`${n1}w1`, 1_000)).outcome).toBe("held");
  });
});
