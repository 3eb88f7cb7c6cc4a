import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../../src/index.ts";
import { MailboxFullError, type MailboxHandler } from "../../../../src/sync/index.ts";
import { watch } from "../../../support/virtual-client.ts";
import { never, newWorld, ttl } from "./world.ts";

// A turn, in virtual time: what its holder handles, what others leave with it, and how it ends.

describe.each([1, 3])("a mailbox on %i endpoints", (count) => {
  test("leaves messages with the holder, who handles them in order in the same turn", async () => {
    const { hold, leave, runtime, handled } = newWorld(count);
    const holding = await hold();
    expect(await leave(["b", "c", "d", "b"])).toEqual(Array(4).fill("queued"));
    await runtime.advance(200);
    expect(holding.value).toEqual({ status: "handled", left: 0 });
    expect(handled).toEqual(["a", "b", "c", "d"]);
    expect(await leave(["c"])).toEqual(["duplicate"]);
  });

  test("loses no message that arrives between the last look and the release", async () => {
    // From before the holder lets go until after that, in steps of 1 ms.
    for (let at = 0; at < 12; at += 1) {
      const { first, second, post, slowly, late, runtime, handled } = newWorld(count);
      for (const link of first.links) link.fate = () => late(2);
      const holding = watch(post(first, "a", slowly(0)));
      await runtime.advance(at);
      const posting = watch(post(second, "b"));
      await runtime.advance(100);
      expect([holding.error, posting.error]).toEqual([undefined, undefined]);
      expect(handled).toEqual(at > 2 ? ["a", "b"] : expect.arrayContaining(["a", "b"]));
    }
  });

  test("says that a message is stored long before it is handled", async () => {
    const { first, second, post, slowly, runtime, within } = newWorld(count);
    const holding = post(first, "a", slowly(50));
    const settled = [holding, holding.stored].map((promise) => watch<unknown>(promise));
    await runtime.advance(10);
    const standing = post(second, "b", slowly(0), { standBy: true });
    settled.push(...[standing, standing.stored].map((promise) => watch<unknown>(promise)));
    await runtime.advance(10);
    expect(settled.map((each) => each.settled)).toEqual([false, true, false, true]);
    await within(10, post(second, "b").stored);
  });

  test("says only with its own error that a message is stored, if nobody awaits its end", async () => {
    const { first, second, post, end, runtime, within } = newWorld(count);
    const failing: MailboxHandler<string> = () => Promise.reject(new Error("refused by the bank"));
    expect(await within(10, post(first, "a", failing).stored)).toBe(undefined);
    end(second);
    const stored = watch(post(second, "b").stored);
    await runtime.advance(10_000);
    expect(stored.error).toBeInstanceOf(QuorumError);
  });

  test("keeps the process alive until the messages are handled", async () => {
    const { client, post, slowly, runtime, within } = newWorld(count);
    const kept: Promise<unknown>[] = [];
    const own = client({ waitUntil: (work) => void kept.push(work) });
    await within(10, post(own, "a", slowly(50)).stored);
    const all = watch(Promise.all(kept));
    await runtime.advance(10);
    expect(all.settled).toBe(false);
    await runtime.advance(100);
    expect(all.settled).toBe(true);
  });

  test("gives all that wait at once to those who ask for it", async () => {
    const { hold, leave, runtime, pause } = newWorld(count);
    const batches: string[][] = [];
    const holding = await hold(async (messages) => {
      for await (const batch of messages.batches()) {
        batches.push(batch.map(({ value }) => value));
        await pause(50);
      }
    });
    await leave(["b", "c"]);
    await runtime.advance(200);
    expect([holding.value?.status, batches]).toEqual(["handled", [["a"], ["b", "c"]]]);
  });

  test("goes on with the oldest message after a holder whose process has ended", async () => {
    const { first, client, hold, leave, end, runtime, handled, within, mailbox, slowly } = newWorld(count);
    await hold(never);
    end(first);
    await leave(["b"]);
    await runtime.advance(ttl);
    const { redlock } = client();
    const drain = () => within(50, mailbox(redlock).drain(slowly(1)));
    expect(await drain()).toEqual({ handled: 2, left: 0 });
    expect(handled).toEqual(["a", "b"]);
    expect(await drain()).toEqual({ handled: 0, left: 0 });
  });

  test("refuses a message where it is full, or drops the oldest one for it", async () => {
    const { hold, leave, post, second, runtime, handled, slowly } = newWorld(count);
    const options = { maxSize: 2 };
    await hold(slowly(50), { options });
    await leave(["b"], { options });
    const refused = watch(post(second, "c", undefined, { options }));
    await runtime.advance(1);
    expect(refused.error).toBeInstanceOf(MailboxFullError);
    expect(refused.error).toMatchObject({ code: "MAILBOX_FULL", resource: "m", maxSize: 2 });
    const dropping = { ...options, onFull: "drop-oldest" } as const;
    expect(await leave(["d", "e"], { options: dropping })).toEqual(["queued", "queued"]);
    await runtime.advance(300);
    expect(handled).toEqual(["a", "d", "e"]);
  });

  test("stands by until the holder has handled the message, or takes over where it ends", async () => {
    const { first, second, client, hold, post, end, runtime, handled, slowly } = newWorld(count);
    const options = { wait: 5_000, standBy: true };
    await hold(slowly(100));
    const standing = watch(post(second, "b", undefined, options));
    await runtime.advance(150);
    expect(standing.settled).toBe(false);
    await runtime.advance(100);
    expect([standing.value, handled]).toEqual([{ status: "handled", left: 0 }, ["a", "b"]]);
    watch(post(first, "c", never));
    await runtime.advance(10);
    end(first);
    const heir = watch(post(client(), "d", undefined, options));
    await runtime.advance(1.2 * ttl);
    expect([heir.value, handled.slice(2)]).toEqual([{ status: "handled", left: 0 }, ["c", "d"]]);
  });

  test("stands by for its `wait` at most: then the message is still queued", async () => {
    const { second, hold, post, runtime, handled, slowly } = newWorld(count);
    await hold(slowly(500));
    const standing = watch(post(second, "b", undefined, { standBy: true, wait: 100 }));
    await runtime.advance(300);
    expect([standing.error, standing.value]).toEqual([undefined, { status: "queued", left: 0 }]);
    await runtime.advance(1_000);
    expect(handled).toEqual(["a", "b"]);
  });

  test("stops before the deadline, and says what is left", async () => {
    const { second, hold, leave, runtime, handled, slowly, within, mailbox } = newWorld(count);
    const holding = await hold(slowly(200), { deadline: runtime.now() + 700 });
    await leave(["b", "c", "d"]);
    await runtime.advance(700);
    expect(holding.value).toEqual({ status: "handled", left: 2 });
    expect(await within(10, mailbox(second.redlock).drain(slowly(0)))).toEqual({ handled: 2, left: 0 });
    expect(handled).toEqual(["a", "b", "c", "d"]);
  });

  test("takes another turn where one lasts for long, so that each message has its time", async () => {
    const { hold, leave, runtime, handled, pause } = newWorld(count);
    const fences: number[] = [];
    const slow: MailboxHandler<string> = async (messages, { fence }) => {
      for await (const { value } of messages) {
        fences.push(fence);
        await pause(900);
        handled.push(value);
      }
    };
    const holding = await hold(slow, { options: { maxHold: 2_000, wait: 60_000 } });
    await leave(["b", "c", "d"]);
    await runtime.advance(4_000);
    expect([holding.value?.status, handled]).toEqual(["handled", ["a", "b", "c", "d"]]);
    const turns = [...new Set(fences)];
    expect([turns.length, turns[0]! < turns[1]!]).toEqual([2, true]);
  });

  test("ends with its signal, and leaves the message", async () => {
    const { second, hold, post, runtime, handled } = newWorld(count);
    await hold();
    const controller = new AbortController();
    const standing = watch(post(second, "b", undefined, { signal: controller.signal, standBy: true }));
    await runtime.advance(20);
    controller.abort("enough");
    await runtime.advance(1);
    expect(standing.error).toBe("enough");
    await runtime.advance(300);
    expect(handled).toEqual(["a", "b"]);
  });
});

test("a message whose post has failed may be handled, and is handled once if it is posted again", async () => {
  const { client, leave, post, runtime, handled } = newWorld();
  const cut = client({ wait: 0 });
  for (const link of cut.links.slice(1)) link.fate = () => "lost";
  const failed = watch(post(cut, "a"));
  await runtime.advance(1_000);
  expect(failed.error).toBeInstanceOf(QuorumError);
  expect(await leave(["b", "a"])).toEqual(["handled", "duplicate"]);
  expect(handled).toEqual(["a", "b"]);
});

test("a value that is too large, or no JSON, is refused before anything is sent", async () => {
  const { first, mailbox } = newWorld();
  const box = mailbox(first.redlock, { maxBytes: 10 });
  const run = () => expect.unreachable("it must not run");
  await expect(box.post({ id: "a", value: "x".repeat(9) }, run)).rejects.toThrow(
    new RangeError("the value has 11 bytes as JSON, and maxBytes is 10: store it elsewhere, and post where"),
  );
  await expect(box.post({ id: "a", value: (() => 1) as never }, run)).rejects.toThrow(TypeError);
  await expect(box.post({ id: `a:${undefined}`, value: "x" }, run)).rejects.toThrow(
    /is a variable in it not set/,
  );
  expect(first.links.flatMap(({ sent }) => sent)).toEqual([]);
});
