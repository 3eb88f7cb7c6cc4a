import { expect, test } from "vitest";
import { Deadline } from "../../../../src/endpoints/deadline.ts";
import type { EndpointRequest } from "../../../../src/endpoints/endpoint-request.ts";
import { memberScript } from "../../../../src/sync/internal/member.lua.ts";
import {
  type Announcements,
  acquireMember,
  extendMember,
  releaseMember,
} from "../../../../src/sync/internal/members.ts";
import { describeOnce } from "../../../support/sets.ts";
import { scriptWorld } from "../../../support/virtual-script.ts";

const nonces = ["1", "2", "3"].map((digit) => `t${digit.repeat(32)}`) as [string, string, string];
const [n1, n2, n3] = nonces;

describeOnce("a member in virtual time", () => {
  const cellOf = (value: string) => ({
    keys: ["members"],
    value,
    tombstone: `void:${value}`,
  });
  const writer = { key: "writers", own: { id: "w1", tombstone: undefined, expiry: 100 } };
  const reader = { key: "writers" };

  async function newMembers() {
    const world = await scriptWorld(memberScript);
    return {
      ...world,
      acquire: (value: string, ttl: number, announcements?: Announcements) =>
        acquireMember(world.call(), cellOf(value), ttl, announcements),
      extend: async (value: string, ttl: number) =>
        (await world.run((at) => extendMember(at, cellOf(value), ttl))).outcome,
      release: async (value: string, announcements?: Announcements) =>
        (
          await world.run((at) =>
            releaseMember(at, cellOf(value), { retention: 0, channel: "c", announcements }),
          )
        ).outcome,
    };
  }

  test("is in the way until its last ms, and then no more", async () => {
    const { runtime, execute, acquire } = await newMembers();
    await acquire(`${n1}r`, 100);
    expect(execute("ZSCORE", "members", `${n1}r`)).toBe(`${1_700_000_000_999 + 100}`);
    await runtime.advance(99);
    expect(await acquire(`${n2}w1`, 100, writer)).toEqual({ outcome: "held", retryAfter: 1 });
    expect(execute("ZCARD", "writers")).toBe(1);
    // A second execution, after the tombstone of an announcement.
    execute("SET", `void:${n1}r`, 1);
    expect(await acquire(`${n1}r`, 100)).toEqual({ outcome: "granted" });
    // So that the key stays.
    await acquire(`${n3}r`, 1_000);
    await runtime.advance(1);
    expect(await acquire(`${n1}r`, 100)).toEqual({ outcome: "held", retryAfter: 0 });
  });

  test("is extended, looked at, and missed, each for what is billed", async () => {
    const { acquire, extend } = await newMembers();
    await acquire(`${n1}a`, 100);
    expect(await extend(`${n1}a`, 1_000)).toBe("granted");
    expect(await extend(`${n1}a`, 0)).toBe("granted");
    expect(await extend(`${n2}a`, 1_000)).toBe("lost");
  });

  test("that is there is not refused for an announcement that is about to expire", async () => {
    const { runtime, acquire } = await newMembers();
    await acquire(`${n1}r`, 1_000);
    await acquire(`${n2}w1`, 100, writer);
    await runtime.advance(99);
    expect(await acquire(`${n3}r`, 1_000, reader)).toEqual({ outcome: "held", retryAfter: 1 });
    expect(await acquire(`${n1}r`, 1_000, reader)).toEqual({ outcome: "granted" });
  });

  test("tells those that wait when none is left, to the ms", async () => {
    for (const [ms, messages] of [
      [99, []],
      [100, ["1"]],
    ] as const) {
      const { runtime, listen, acquire, release } = await newMembers();
      await acquire(`${n1}a`, 100);
      await acquire(`${n2}a`, 1_000);
      const heard = listen("c");
      await runtime.advance(ms);
      expect([await release(`${n2}a`), heard()]).toEqual(["granted", messages]);
    }
    const { release } = await newMembers();
    expect(await release(`${n1}a`), "nobody listens").toBe("lost");
  });

  test("tells writers when it was the last one, and readers when no writer waits", async () => {
    const { listen, acquire, release } = await newMembers();
    const heard = listen("c");
    for (const nonce of nonces) await acquire(`${nonce}r`, 1_000);
    expect([await release(`${n1}r`, reader), heard()], "others are there").toEqual(["granted", []]);
    await acquire(`${n1}w1`, 1_000, writer);
    expect([await release(`${n2}r`, reader), heard()], "a writer waits for others").toEqual(["granted", []]);
    expect([await release("w1", writer), heard()], "it has given up").toEqual(["lost", ["0:r"]]);
    await acquire(`${n1}w1`, 1_000, writer);
    expect([await release(`${n3}r`, reader), heard()], "none is left").toEqual(["granted", ["1:w"]]);
  });
});

describeOnce("replies that the script cannot have given", () => {
  const value = `${n1}a`;
  const callWith = (reply: unknown): EndpointRequest => ({
    endpoint: { name: "e", dialect: "redis", exactReplies: true, send: async () => reply },
    deadline: new Deadline(),
    cost: { requests: 0, commands: 0 },
  });
  const cell = { keys: ["k"], value, tombstone: "v" };
  const nonsense = [null, "OK", 1, value, [], [1], ["t"], [value, 1], [null, 5], [n1], [0, 5, 6], [0, value]];

  test.each([...nonsense, [0], [0, -1], [0, 1.5], [0, "5"]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to an acquire",
    async (_, reply) => {
      await expect(acquireMember(callWith(reply), cell, 10)).rejects.toThrow("unexpected reply");
    },
  );

  test.each([...nonsense, [0, 5]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to an extend and to a release",
    async (_, reply) => {
      await expect(extendMember(callWith(reply), cell, 10)).rejects.toThrow("unexpected reply");
      await expect(releaseMember(callWith(reply), cell, { retention: 0 })).rejects.toThrow(
        "unexpected reply",
      );
    },
  );

  test("and those that it gives", async () => {
    expect((await acquireMember(callWith([value]), cell, 10)).outcome).toBe("granted");
    expect(await acquireMember(callWith([0, 7]), cell, 10)).toEqual({ outcome: "held", retryAfter: 7 });
    expect((await extendMember(callWith([value]), cell, 10)).outcome).toBe("granted");
    expect((await releaseMember(callWith([0]), cell, { retention: 0 })).outcome).toBe("lost");
  });
});
