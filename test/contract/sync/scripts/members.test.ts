import { afterAll, beforeAll, describe, expect, test } from "vitest";
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
import type { OpenStore } from "../../../support/stores.ts";
import { scriptWorld } from "../../../support/virtual-script.ts";
import { stores } from "../stand.ts";

const nonces = ["1", "2", "3"].map((digit) => `t${digit.repeat(32)}`) as [string, string, string];
const [n1, n2, n3] = nonces;

describe.each(stores([1], [1]).filter(({ count }) => count === 1))("a member on $title", ({ open }) => {
  let store: OpenStore;
  let names = 0;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  function call(): EndpointRequest {
    return {
      endpoint: store.endpoints[0]!,
      deadline: new Deadline(),
      cost: { requests: 0, commands: 0 },
    };
  }

  /** A set of members of its own, and the operations on it. */
  function newMembers() {
    names += 1;
    const key = `members:{${names}}`;
    const waiting = `waiting:{${names}}`;
    const cellOf = (value: string) => ({ keys: [key], value, tombstone: `${key}:${value}` });
    const own = { id: "w1", tombstone: `${waiting}:w1`, expiry: 20_000 };
    return {
      key,
      waiting,
      announced: { key: waiting, own },
      alwaysAnnounced: { key: waiting, own: { ...own, always: true } },
      asReader: { key: waiting },
      acquire: (value: string, ttl = 20_000, announcements?: Announcements) =>
        acquireMember(call(), cellOf(value), ttl, announcements),
      extend: (value: string, ttl: number) => extendMember(call(), cellOf(value), ttl),
      release: (value: string, retention = 0, announcements?: Announcements) =>
        releaseMember(call(), cellOf(value), { retention, announcements }),
      deadline: async (value: string) => Number(await store.execute(0, ["ZSCORE", key, value])),
      members: () => store.execute(0, ["ZRANGE", key, "0", "-1"]),
      announcements: () => store.execute(0, ["ZRANGE", waiting, "0", "-1"]),
      ttl: async (name: string) => Number(await store.execute(0, ["PTTL", name])),
    };
  }

  test("a repeated acquire of a member is not refused, though its announcement was removed", async () => {
    const { acquire, release, announced, alwaysAnnounced, announcements, members } = newMembers();
    expect(await acquire(`${n1}w`, 20_000, announced)).toEqual({ outcome: "granted" });
    // The last request of a writer that gives up may overtake a copy that a client in between sends.
    await release("w1", 60_000, announced);
    expect(await acquire(`${n1}w`, 20_000, alwaysAnnounced)).toEqual({ outcome: "granted" });
    expect(await announcements()).toEqual([]);
    await release(`${n1}w`, 60_000, announced);
    expect((await acquire(`${n1}w`, 20_000, announced)).outcome).toBe("held");
    expect(await members()).toEqual([]);
  });

  test("an extension costs 6 commands, and where it only looks or finds no member, 2", async () => {
    const { key, acquire } = newMembers();
    await acquire(`${n1}a`);
    const costOf = async (value: string, ttl: number) => {
      const extension = call();
      await extendMember(extension, { keys: [key], value }, ttl);
      return extension.cost.commands;
    };
    // Beside the script itself, which is also counted.
    expect([
      await costOf(`${n1}a`, 20_000),
      await costOf(`${n1}a`, 0),
      await costOf(`${n2}a`, 20_000),
    ]).toEqual([7, 3, 3]);
  });

  test("members of one group hold it together; another group is refused until the last is gone", async () => {
    const { acquire, release, members } = newMembers();
    expect(await acquire(`${n1}a`)).toEqual({ outcome: "granted" });
    expect(await acquire(`${n2}a`, 40_000)).toEqual({ outcome: "granted" });
    const { outcome, retryAfter } = await acquire(`${n3}b`);
    expect([outcome, retryAfter! > 30_000, retryAfter! <= 40_000]).toEqual(["held", true, true]);
    expect(await release(`${n2}a`)).toEqual({ outcome: "granted" });
    expect(await release(`${n2}a`)).toEqual({ outcome: "lost" });
    expect((await acquire(`${n3}b`)).outcome).toBe("held");
    expect(await members()).toEqual([`${n1}a`]);
    expect(await release(`${n1}a`)).toEqual({ outcome: "granted" });
    expect((await acquire(`${n3}b`)).outcome).toBe("granted");
  });

  test("groups are compared whole: a prefix is another group", async () => {
    const { acquire } = newMembers();
    await acquire(`${n1}ab`);
    expect((await acquire(`${n2}a`)).outcome).toBe("held");
    expect((await acquire(`${n2}b`)).outcome).toBe("held");
    expect((await acquire(`${n2}`)).outcome).toBe("held");
    expect((await acquire(`${n2}ab`)).outcome).toBe("granted");
  });

  test("a repeated acquire changes nothing and shortens nothing", async () => {
    const { acquire, extend, members, deadline, ttl, key } = newMembers();
    await acquire(`${n1}a`, 20_000);
    await extend(`${n1}a`, 60_000);
    const extended = await deadline(`${n1}a`);
    expect((await acquire(`${n1}a`, 20_000)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBe(extended);
    expect(await ttl(key)).toBeGreaterThan(50_000);
    expect(await members()).toEqual([`${n1}a`]);
  });

  test("extend sets a deadline, also an earlier one, only looks with ttl 0, and creates nothing", async () => {
    const { acquire, extend, deadline, key, ttl, members } = newMembers();
    expect((await extend(`${n1}a`, 20_000)).outcome).toBe("lost");
    expect(await members()).toEqual([]);
    await acquire(`${n1}a`, 20_000);
    const first = await deadline(`${n1}a`);
    expect((await extend(`${n1}a`, 0)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBe(first);
    expect((await extend(`${n1}a`, 5_000)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBeLessThan(first);
    expect((await extend(`${n1}a`, 90_000)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBeGreaterThan(first + 60_000);
    expect(await ttl(key)).toBeGreaterThan(80_000);
  });

  test("a repeated release returns what the first one did", async () => {
    const { acquire, release, members } = newMembers();
    await acquire(`${n1}a`);
    for (let copy = 0; copy < 3; copy += 1) {
      expect(await release(`${n1}a`, 60_000)).toEqual({ outcome: "granted" });
      // A member that was rolled back before it was acquired is not there, now or later.
      expect(await release(`${n2}a`, 60_000)).toEqual({ outcome: "lost" });
    }
    expect((await acquire(`${n1}a`)).outcome).toBe("held");
    expect(await members()).toEqual([]);
  });

  test("a writer is announced where it is refused, or always; readers are refused for it, writers are not", async () => {
    const { acquire, release, announced, alwaysAnnounced, asReader, announcements, ttl, waiting } =
      newMembers();
    expect((await acquire(`${n1}w1`, 20_000, announced)).outcome).toBe("granted");
    expect(await announcements()).toEqual([]);
    await release(`${n1}w1`, 0, announced);
    expect((await acquire(`${n1}r`, 20_000, asReader)).outcome).toBe("granted");
    expect((await acquire(`${n2}w1`, 20_000, announced)).outcome).toBe("held");
    expect(await announcements()).toEqual(["w1"]);
    expect(await ttl(waiting)).toBeGreaterThan(15_000);
    const refused = await acquire(`${n3}r`, 20_000, asReader);
    expect([refused.outcome, refused.retryAfter! > 15_000]).toEqual(["held", true]);
    // A repeated acquire: its reader holds it already.
    expect((await acquire(`${n1}r`, 20_000, asReader)).outcome).toBe("granted");
    await release(`${n1}r`);
    expect((await acquire(`${n3}r`, 20_000, asReader)).outcome).toBe("held");
    expect((await acquire(`${n3}w2`, 20_000)).outcome).toBe("granted");
    await release(`${n3}w2`);
    await release("", 0, announced);
    expect(await announcements()).toEqual([]);
    expect((await acquire(`${n3}r`, 20_000, asReader)).outcome).toBe("granted");
    await release(`${n3}r`);
    expect((await acquire(`${n1}w1`, 20_000, alwaysAnnounced)).outcome).toBe("granted");
    expect(await announcements()).toEqual(["w1"]);
  });
});

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
