import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../../src/index.ts";
import { MailboxFullError, type MailboxHandler } from "../../../../src/sync/index.ts";
import { watch } from "../../../support/virtual-client.ts";
import { never, newWorld, ttl } from "./world.ts";

// A turn, in virtual time: what its holder handles, what others leave with it, and how it ends.

describe.each([1, 3])("a mailbox on %i endpoints", (count) => {
  test("handles a message that finds the turn free, and a repeated one not again", async () => {
    const world = newWorld(count);
    const client = world.client();
    expect(await world.after(0, world.post(client, "a"))).toEqual({ status: "handled", left: 0 });
    expect(await world.after(0, world.post(client, "a"))).toEqual({ status: "duplicate", left: 0 });
    expect(world.handled).toEqual(["a"]);
  });

  test("leaves messages with the holder, who handles them in order in the same turn", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const holding = watch(world.post(first, "a", world.slowly(50)));
    await world.runtime.advance(10);
    for (const text of ["b", "c", "d"]) {
      expect(await world.after(1, world.post(second, text))).toEqual({ status: "queued", left: 0 });
    }
    expect(await world.after(1, world.post(second, "b"))).toMatchObject({ status: "queued" });
    await world.runtime.advance(200);
    expect(holding.value).toEqual({ status: "handled", left: 0 });
    expect(world.handled).toEqual(["a", "b", "c", "d"]);
    expect(await world.after(1, world.post(second, "c"))).toMatchObject({ status: "duplicate" });
  });

  test("loses no message that arrives between the last look and the release", async () => {
    // From before the holder lets go until after that, in steps of 1 ms.
    for (let at = 0; at < 12; at += 1) {
      const world = newWorld(count);
      const [first, second] = [world.client(), world.client()];
      for (const link of first.links) link.fate = () => world.late(2);
      const holding = watch(world.post(first, "a", world.slowly(0)));
      await world.runtime.advance(at);
      const posting = watch(world.post(second, "b"));
      await world.runtime.advance(100);
      expect([holding.error, posting.error]).toEqual([undefined, undefined]);
      expect(world.handled).toEqual(at > 2 ? ["a", "b"] : expect.arrayContaining(["a", "b"]));
    }
  });

  test("says that a message is stored long before it is handled", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const holding = world.post(first, "a", world.slowly(50));
    const settled = [holding, holding.stored].map((promise) => watch<unknown>(promise));
    await world.runtime.advance(10);
    const standing = world.post(second, "b", world.slowly(0), { standBy: true });
    settled.push(...[standing, standing.stored].map((promise) => watch<unknown>(promise)));
    await world.runtime.advance(10);
    expect(settled.map((each) => each.settled)).toEqual([false, true, false, true]);
    await world.after(10, world.post(second, "b").stored);
  });

  test("says only with its own error that a message is stored, if nobody awaits its end", async () => {
    const world = newWorld(count);
    const failing: MailboxHandler<string> = () => Promise.reject(new Error("refused by the bank"));
    expect(await world.after(10, world.post(world.client(), "a", failing).stored)).toBe(undefined);
    const cut = world.client();
    world.end(cut);
    const stored = watch(world.post(cut, "b").stored);
    await world.runtime.advance(10_000);
    expect(stored.error).toBeInstanceOf(QuorumError);
  });

  test("keeps the process alive until the messages are handled", async () => {
    const world = newWorld(count);
    const kept: Promise<unknown>[] = [];
    const client = world.client({ waitUntil: (work) => void kept.push(work) });
    await world.after(10, world.post(client, "a", world.slowly(50)).stored);
    const all = watch(Promise.all(kept));
    await world.runtime.advance(10);
    expect(all.settled).toBe(false);
    await world.runtime.advance(100);
    expect(all.settled).toBe(true);
  });

  test("draws a larger fence for each turn", async () => {
    const world = newWorld(count);
    const fences: number[] = [];
    for (const text of ["a", "b", "c"]) {
      const draw: MailboxHandler<string> = async (messages, { fence }) => {
        for await (const _ of messages) fences.push(fence);
      };
      await world.after(0, world.post(world.client(), text, draw));
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
    expect(fences).toHaveLength(3);
  });

  test("gives all that wait at once to those who ask for it", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const batches: string[][] = [];
    const steering: MailboxHandler<string> = async (messages) => {
      for await (const batch of messages.batches()) {
        batches.push(batch.map(({ value }) => value));
        await world.pause(50);
      }
    };
    const holding = watch(world.post(first, "a", steering));
    await world.runtime.advance(10);
    for (const text of ["b", "c"]) await world.after(1, world.post(second, text));
    await world.runtime.advance(200);
    expect([holding.value?.status, batches]).toEqual(["handled", [["a"], ["b", "c"]]]);
  });

  test("goes on with the oldest message after a holder whose process has ended", async () => {
    const world = newWorld(count);
    const [first, second, third] = [world.client(), world.client(), world.client()];
    watch(world.post(first, "a", never));
    await world.runtime.advance(10);
    world.end(first);
    await world.after(1, world.post(second, "b"));
    await world.runtime.advance(ttl);
    expect(await world.after(50, world.mailbox(third.redlock).drain(world.slowly(1)))).toEqual({
      handled: 2,
      left: 0,
    });
    expect(world.handled).toEqual(["a", "b"]);
    expect(await world.after(1, world.mailbox(third.redlock).drain(world.slowly(1)))).toEqual({
      handled: 0,
      left: 0,
    });
  });

  test("refuses a message where it is full, or drops the oldest one for it", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const options = { maxSize: 2 };
    watch(world.post(first, "a", world.slowly(50), { options }));
    await world.runtime.advance(10);
    await world.after(1, world.post(second, "b", undefined, { options }));
    const refused = watch(world.post(second, "c", undefined, { options }));
    await world.runtime.advance(1);
    expect(refused.error).toBeInstanceOf(MailboxFullError);
    expect(refused.error).toMatchObject({ code: "MAILBOX_FULL", resource: "m", maxSize: 2 });
    const drops = { options: { ...options, onFull: "drop-oldest" } } as const;
    expect(await world.after(1, world.post(second, "d", undefined, drops))).toMatchObject({
      status: "queued",
    });
    expect(await world.after(1, world.post(second, "e", undefined, drops))).toMatchObject({
      status: "queued",
    });
    await world.runtime.advance(300);
    expect(world.handled).toEqual(["a", "d", "e"]);
  });

  test("stands by until the holder has handled the message, or takes over where it ends", async () => {
    const world = newWorld(count);
    const [first, second, third] = [world.client(), world.client(), world.client()];
    const options = { wait: 5_000 };
    watch(world.post(first, "a", world.slowly(100)));
    await world.runtime.advance(10);
    const standing = watch(world.post(second, "b", undefined, { ...options, standBy: true }));
    await world.runtime.advance(150);
    expect(standing.settled).toBe(false);
    await world.runtime.advance(100);
    expect([standing.value, world.handled]).toEqual([{ status: "handled", left: 0 }, ["a", "b"]]);
    watch(world.post(first, "c", never));
    await world.runtime.advance(10);
    world.end(first);
    const heir = watch(world.post(third, "d", undefined, { ...options, standBy: true }));
    await world.runtime.advance(1.2 * ttl);
    expect([heir.value, world.handled.slice(2)]).toEqual([{ status: "handled", left: 0 }, ["c", "d"]]);
  });

  test("stands by for its `wait` at most: then the message is still queued", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    watch(world.post(first, "a", world.slowly(500)));
    await world.runtime.advance(10);
    const standing = watch(world.post(second, "b", undefined, { standBy: true, wait: 100 }));
    await world.runtime.advance(300);
    expect([standing.error, standing.value]).toEqual([undefined, { status: "queued", left: 0 }]);
    await world.runtime.advance(1_000);
    expect(world.handled).toEqual(["a", "b"]);
  });

  test("stops before the deadline, and says what is left", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const deadline = world.runtime.now() + 700;
    const holding = watch(world.post(first, "a", world.slowly(200), { deadline }));
    await world.runtime.advance(10);
    for (const text of ["b", "c", "d"]) await world.after(1, world.post(second, text));
    await world.runtime.advance(700);
    expect(holding.value).toEqual({ status: "handled", left: 2 });
    expect(await world.after(10, world.mailbox(second.redlock).drain(world.slowly(0)))).toEqual({
      handled: 2,
      left: 0,
    });
    expect(world.handled).toEqual(["a", "b", "c", "d"]);
  });

  test("takes another turn where one lasts for long, so that each message has its time", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const fences = new Set<number>();
    const slow: MailboxHandler<string> = async (messages, { fence }) => {
      for await (const { value } of messages) {
        fences.add(fence);
        await world.pause(900);
        world.handled.push(value);
      }
    };
    const options = { maxHold: 2_000, wait: 60_000 };
    const holding = watch(world.post(first, "a", slow, { options }));
    await world.runtime.advance(10);
    for (const text of ["b", "c", "d"]) await world.after(1, world.post(second, text));
    await world.runtime.advance(4_000);
    expect([holding.value?.status, world.handled, fences.size]).toEqual(["handled", ["a", "b", "c", "d"], 2]);
  });

  test("ends with its signal, and leaves the message", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const controller = new AbortController();
    const waiting = watch(world.post(second, "a", undefined, { signal: controller.signal, standBy: true }));
    await world.runtime.advance(1);
    expect(waiting.settled).toBe(true);
    watch(world.post(first, "b", world.slowly(100)));
    await world.runtime.advance(1);
    const standing = watch(world.post(second, "c", undefined, { signal: controller.signal, standBy: true }));
    await world.runtime.advance(20);
    controller.abort("enough");
    await world.runtime.advance(1);
    expect(standing.error).toBe("enough");
    await world.runtime.advance(300);
    expect(world.handled).toEqual(["a", "b", "c"]);
  });
});

test("a message whose post has failed may be handled, and is handled once if it is posted again", async () => {
  const world = newWorld();
  const [first, second] = [world.client({ wait: 0 }), world.client()];
  for (const link of first.links.slice(1)) link.fate = () => "lost";
  const failed = watch(world.post(first, "a"));
  await world.runtime.advance(1_000);
  expect(failed.error).toBeInstanceOf(QuorumError);
  expect(await world.after(10, world.post(second, "b"))).toEqual({ status: "handled", left: 0 });
  expect(await world.after(10, world.post(second, "a"))).toEqual({ status: "duplicate", left: 0 });
  expect(world.handled).toEqual(["a", "b"]);
});

test("a value that is too large, or no JSON, is refused before anything is sent", async () => {
  const { client, mailbox } = newWorld();
  const { redlock, links } = client();
  const box = mailbox(redlock, { maxBytes: 10 });
  const run = () => expect.unreachable("it must not run");
  await expect(box.post({ id: "a", value: "x".repeat(9) }, run)).rejects.toThrow(
    new RangeError("the value has 11 bytes as JSON, and maxBytes is 10: store it elsewhere, and post where"),
  );
  await expect(box.post({ id: "a", value: (() => 1) as never }, run)).rejects.toThrow(TypeError);
  await expect(box.post({ id: `a:${undefined}`, value: "x" }, run)).rejects.toThrow(
    /is a variable in it not set/,
  );
  expect(links.flatMap(({ sent }) => sent)).toEqual([]);
});
