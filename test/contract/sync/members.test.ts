import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Call } from "../../../src/endpoints/call.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import {
  type Announcements,
  acquireMember,
  extendMember,
  memberScript,
  releaseMember,
} from "../../../src/sync/internal/members.ts";
import type { OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { stores } from "./stand.ts";

test("memberScript has the hash of the text that each dialect sends", () => {
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");
  const { source } = memberScript;
  expect(memberScript.sha).toEqual({ redis: sha1(source), upstash: sha1(upstashFlag + source) });
});

const nonces = ["1", "2", "3"].map((digit) => `t${digit.repeat(32)}`) as [string, string, string];
const [n1, n2, n3] = nonces;
const from = 34;

describe.each(stores([1], [1]).filter(({ count }) => count === 1))("a member on $title", ({ open }) => {
  let store: OpenStore;
  let names = 0;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  function call(): Call {
    return {
      endpoint: store.endpoints[0]!,
      signal: new AbortController().signal,
      cost: { requests: 0, commands: 0 },
    };
  }

  /** A set of members that nobody has used before, and what is done with it. */
  function place() {
    names += 1;
    const key = `members:{${names}}`;
    const waiting = `waiting:{${names}}`;
    const registerOf = (value: string) => ({ keys: [key], value, from, tombstone: `${key}:${value}` });
    const own = { id: "w1", tombstone: `${waiting}:w1`, expiry: 20_000 };
    return {
      key,
      waiting,
      announced: { key: waiting, own },
      heeded: { key: waiting },
      take: (value: string, ttl = 20_000, ...rest: [Announcements?, boolean?]) =>
        acquireMember(call(), registerOf(value), ttl, ...rest),
      renew: (value: string, ttl: number) => extendMember(call(), registerOf(value), ttl),
      drop: (value: string, retention = 0, announcements?: Announcements) =>
        releaseMember(call(), registerOf(value), retention, announcements),
      deadline: async (value: string) => Number(await store.execute(0, ["ZSCORE", key, value])),
      members: () => store.execute(0, ["ZRANGE", key, "0", "-1"]),
      announcements: () => store.execute(0, ["ZRANGE", waiting, "0", "-1"]),
      ttl: async (name: string) => Number(await store.execute(0, ["PTTL", name])),
    };
  }

  test("whoever stands is not refused when the same is asked again, though its announcement was taken back", async () => {
    const { take, drop, announced, announcements, members } = place();
    expect(await take(`${n1}w`, 20_000, announced)).toEqual({ outcome: "granted" });
    // The last thing that a writer sends who gives up; it may come before what a client in between repeats.
    await drop("w1", 60_000, announced);
    expect(await take(`${n1}w`, 20_000, announced, true)).toEqual({ outcome: "granted" });
    expect(await announcements()).toEqual([]);
    await drop(`${n1}w`, 60_000, announced);
    expect((await take(`${n1}w`, 20_000, announced)).outcome).toBe("held");
    expect(await members()).toEqual([]);
  });

  test("members of one group stand together, another group's is refused until the last is gone", async () => {
    const { take, drop, members } = place();
    expect(await take(`${n1}a`)).toEqual({ outcome: "granted" });
    expect(await take(`${n2}a`, 40_000)).toEqual({ outcome: "granted" });
    const { outcome, retryAfter } = await take(`${n3}b`);
    expect([outcome, retryAfter! > 30_000, retryAfter! <= 40_000]).toEqual(["held", true, true]);
    expect(await drop(`${n2}a`)).toEqual({ outcome: "granted" });
    expect(await drop(`${n2}a`)).toEqual({ outcome: "lost" });
    expect((await take(`${n3}b`)).outcome).toBe("held");
    expect(await members()).toEqual([`${n1}a`]);
    expect(await drop(`${n1}a`)).toEqual({ outcome: "granted" });
    expect((await take(`${n3}b`)).outcome).toBe("granted");
  });

  test("a group is compared whole: none is a part of another", async () => {
    const { take } = place();
    await take(`${n1}ab`);
    expect((await take(`${n2}a`)).outcome).toBe("held");
    expect((await take(`${n2}b`)).outcome).toBe("held");
    expect((await take(`${n2}`)).outcome).toBe("held");
    expect((await take(`${n2}ab`)).outcome).toBe("granted");
  });

  test("each ends by itself, and the others go on", async () => {
    const { take, renew, drop } = place();
    await take(`${n1}a`, 50);
    await take(`${n2}a`, 20_000);
    await until(async () => (await renew(`${n1}a`, 0)).outcome === "lost", "its end");
    // Nobody has cleared it away yet.
    expect((await renew(`${n1}a`, 20_000)).outcome).toBe("lost");
    expect((await drop(`${n1}a`)).outcome).toBe("lost");
    expect((await renew(`${n2}a`, 0)).outcome).toBe("granted");
  });

  test("who has died is cleared away by the next one, and hinders nobody", async () => {
    const { take, renew, members } = place();
    await take(`${n1}a`, 50);
    await until(async () => (await renew(`${n1}a`, 0)).outcome === "lost", "its end");
    expect((await take(`${n2}b`)).outcome).toBe("granted");
    expect(await members()).toEqual([`${n2}b`]);
  });

  test("a take that is executed again changes no more, and shortens nothing", async () => {
    const { take, renew, members, deadline, ttl, key } = place();
    await take(`${n1}a`, 20_000);
    await renew(`${n1}a`, 60_000);
    const extended = await deadline(`${n1}a`);
    expect((await take(`${n1}a`, 20_000)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBe(extended);
    expect(await ttl(key)).toBeGreaterThan(50_000);
    expect(await members()).toEqual([`${n1}a`]);
  });

  test("renew sets a deadline, also an earlier one, looks with ttl 0, and creates nothing", async () => {
    const { take, renew, deadline, key, ttl, members } = place();
    expect((await renew(`${n1}a`, 20_000)).outcome).toBe("lost");
    expect(await members()).toEqual([]);
    await take(`${n1}a`, 20_000);
    const first = await deadline(`${n1}a`);
    expect((await renew(`${n1}a`, 0)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBe(first);
    expect((await renew(`${n1}a`, 5_000)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBeLessThan(first);
    expect((await renew(`${n1}a`, 90_000)).outcome).toBe("granted");
    expect(await deadline(`${n1}a`)).toBeGreaterThan(first + 60_000);
    expect(await ttl(key)).toBeGreaterThan(80_000);
  });

  test("the key lasts as long as its last member, in whatever order they come", async () => {
    const { take, renew, ttl, key } = place();
    await take(`${n1}a`, 60_000);
    await take(`${n2}a`, 5_000);
    expect(await ttl(key)).toBeGreaterThan(50_000);
    await renew(`${n2}a`, 10_000);
    const left = await ttl(key);
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  test("what was withdrawn is refused when it comes late, and nobody else is", async () => {
    const { take, drop, members } = place();
    expect((await drop(`${n1}a`, 60_000)).outcome).toBe("lost");
    expect(await take(`${n1}a`)).toEqual({ outcome: "held", retryAfter: 0 });
    expect(await members()).toEqual([]);
    expect((await take(`${n2}a`)).outcome).toBe("granted");
  });

  test("a drop that is executed again says what the first one said", async () => {
    const { take, drop, members } = place();
    await take(`${n1}a`);
    for (let copy = 0; copy < 3; copy += 1) {
      expect(await drop(`${n1}a`, 60_000)).toEqual({ outcome: "granted" });
      // What was withdrawn before it came was not there, and is not there later.
      expect(await drop(`${n2}a`, 60_000)).toEqual({ outcome: "lost" });
    }
    expect((await take(`${n1}a`)).outcome).toBe("held");
    expect(await members()).toEqual([]);
  });

  test("a writer is announced where it is refused, or always; readers heed it, writers do not", async () => {
    const { take, drop, announced, heeded, announcements, ttl, waiting } = place();
    expect((await take(`${n1}w1`, 20_000, announced)).outcome).toBe("granted");
    expect(await announcements()).toEqual([]);
    await drop(`${n1}w1`, 0, announced);
    expect((await take(`${n1}r`, 20_000, heeded)).outcome).toBe("granted");
    expect((await take(`${n2}w1`, 20_000, announced)).outcome).toBe("held");
    expect(await announcements()).toEqual(["w1"]);
    expect(await ttl(waiting)).toBeGreaterThan(15_000);
    const refused = await take(`${n3}r`, 20_000, heeded);
    expect([refused.outcome, refused.retryAfter! > 15_000]).toEqual(["held", true]);
    // What is executed again, its reader holds already.
    expect((await take(`${n1}r`, 20_000, heeded)).outcome).toBe("granted");
    await drop(`${n1}r`);
    expect((await take(`${n3}r`, 20_000, heeded)).outcome).toBe("held");
    expect((await take(`${n3}w2`, 20_000)).outcome).toBe("granted");
    await drop(`${n3}w2`);
    await drop("", 0, announced);
    expect(await announcements()).toEqual([]);
    expect((await take(`${n3}r`, 20_000, heeded)).outcome).toBe("granted");
    await drop(`${n3}r`);
    expect((await take(`${n1}w1`, 20_000, announced, true)).outcome).toBe("granted");
    expect(await announcements()).toEqual(["w1"]);
  });

  test("an announcement that was taken back is not made again by a late request", async () => {
    const { take, drop, announced, announcements } = place();
    await take(`${n1}r`);
    await drop("w1", 60_000, announced);
    expect(await take(`${n2}w1`, 20_000, announced, true)).toEqual({ outcome: "held", retryAfter: 0 });
    expect(await announcements()).toEqual([]);
  });

  test("announcements end by themselves, each on its own", async () => {
    const { take, announcements, waiting } = place();
    await take(`${n1}r`, 20_000);
    // Whatever the ttl of the hold that is asked for.
    const announce = (id: string, expiry: number) =>
      take(`${n2}${id}`, 600_000, { key: waiting, own: { id, tombstone: `${waiting}:${id}`, expiry } });
    await announce("long", 60_000);
    await announce("short", 1_000);
    expect(await announcements()).toEqual(["short", "long"]);
    const [short, long] = await Promise.all(
      ["short", "long"].map(async (id) => Number(await store.execute(0, ["ZSCORE", waiting, id]))),
    );
    expect(Math.abs(long! - short! - 59_000)).toBeLessThan(5_000);
    await until(async () => {
      await announce("other", 50_000);
      return ((await announcements()) as string[]).join() === "other,long";
    }, "the end of the short one");
  });
});

describe("replies that the script cannot have made", () => {
  const value = `${n1}a`;
  const told = (reply: unknown): Call => ({
    endpoint: { name: "e", dialect: "redis", exactReplies: true, send: async () => reply },
    signal: new AbortController().signal,
    cost: { requests: 0, commands: 0 },
  });
  const register = { keys: ["k"], value, from, tombstone: "v" };
  const nonsense = [null, "OK", 1, value, [], [1], ["t"], [value, 1], [null, 5], [n1], [0, 5, 6], [0, value]];

  test.each([...nonsense, [0], [0, -1], [0, 1.5], [0, "5"]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to a take",
    async (_, reply) => {
      await expect(acquireMember(told(reply), register, 10)).rejects.toThrow("unexpected reply");
    },
  );

  test.each([...nonsense, [0, 5]].map((reply) => [JSON.stringify(reply), reply]))(
    "%s to a renewal and to a drop",
    async (_, reply) => {
      await expect(extendMember(told(reply), register, 10)).rejects.toThrow("unexpected reply");
      await expect(releaseMember(told(reply), register, 0)).rejects.toThrow("unexpected reply");
    },
  );

  test("and those that it makes", async () => {
    expect((await acquireMember(told([value]), register, 10)).outcome).toBe("granted");
    expect(await acquireMember(told([0, 7]), register, 10)).toEqual({ outcome: "held", retryAfter: 7 });
    expect((await extendMember(told([value]), register, 10)).outcome).toBe("granted");
    expect((await releaseMember(told([0]), register, 0)).outcome).toBe("lost");
  });
});
