import { describe, expect, test, vi } from "vitest";
import { LockLostError } from "../../../../src/index.ts";
import type { FailedMessage, MailboxHandler } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { never, newWorld, nothing, ttl } from "./world.ts";

// Handlers that fail, take too long, or do not read what waits.

describe.each([1, 3])("a mailbox on %i endpoints", (count) => {
  test("lets the others go on where the handler fails at one, and tries that one first in the next turn", async () => {
    const world = newWorld(count);
    const [first, second] = [world.client(), world.client()];
    const attempts: [string, number][] = [];
    const failing: MailboxHandler<string> = async (messages) => {
      for await (const { value, attempt } of messages) {
        attempts.push([value, attempt]);
        await world.pause(20);
        if (value === "a" && attempt < 3) throw new Error("refused by the bank");
      }
    };
    const holding = watch(world.post(first, "a", failing));
    await world.runtime.advance(10);
    await world.after(1, world.post(second, "b", failing));
    await world.runtime.advance(100);
    expect(holding.error).toEqual(new Error("refused by the bank"));
    await world.after(100, world.post(second, "c", failing));
    await world.after(100, world.post(first, "a", failing));
    expect(attempts).toEqual([
      ["a", 1],
      ["b", 1],
      ["a", 2],
      ["c", 1],
      ["a", 3],
    ]);
    expect(first.events.filter(({ type }) => type === "messageFailed")).toMatchObject([
      { id: "a", attempts: 1 },
    ]);
  });

  test("gives up a message that has failed as often as it may, even if its process has ended", async () => {
    const world = newWorld(count);
    const given: FailedMessage<string>[] = [];
    const options = { maxAttempts: 2, onFailed: (message: FailedMessage<string>) => given.push(message) };
    const dying = world.client();
    watch(world.post(dying, "a", never, { options }));
    await world.runtime.advance(10);
    world.end(dying);
    await world.runtime.advance(ttl);
    const error = new Error("no");
    const failing: MailboxHandler<string> = async (messages) => {
      for await (const { value } of messages) if (value === "a") throw error;
    };
    const next = world.client();
    expect(await world.after(10, world.post(next, "b", failing, { options }))).toMatchObject({
      status: "handled",
    });
    expect(given).toEqual([{ id: "a", value: "a", attempts: 2, error }]);
    expect(await world.after(10, world.post(next, "a", failing, { options }))).toMatchObject({
      status: "duplicate",
    });
  });

  test("ends with a handler that reads nothing; what it has not read stays", async () => {
    const world = newWorld(count);
    const client = world.client();
    expect(await world.after(1, world.post(client, "a", nothing))).toEqual({ status: "queued", left: 1 });
    expect(await world.after(1, world.post(client, "b"))).toEqual({ status: "handled", left: 0 });
    expect(world.handled).toEqual(["a", "b"]);
  });
});

const unread =
  "the handler returned without reading a message, so none counts as handled: use for await (const { id, value } of messages)";

test("a message whose turn is lost comes first in the next turn, and a call tries it for as long as it may wait", async () => {
  const world = newWorld();
  const [first, second] = [world.client(), world.client()];
  const handlerOf =
    (...times: number[]): MailboxHandler<string> =>
    async (messages, turn) => {
      for await (const { value } of messages) {
        await world.pause(times.shift() ?? 1);
        if (turn.remaining() <= 0) return;
        world.handled.push(value);
      }
    };
  const options = { maxHold: ttl };
  const holding = watch(world.post(first, "a", handlerOf(3_000, 3_000), { options, wait: 5_000 }));
  await world.runtime.advance(10);
  await world.after(1, world.post(second, "b", handlerOf()));
  await world.runtime.advance(8_000);
  expect(holding.error).toBeInstanceOf(LockLostError);
  const drain = world.mailbox(second.redlock, options).drain(handlerOf(3_000), { wait: 5_000 });
  expect(await world.after(5_000, drain)).toEqual({ handled: 2, left: 0 });
  expect(world.handled).toEqual(["a", "b"]);
});

test("a handler that never asks for a message is reported, and counts as no attempt", async () => {
  const world = newWorld();
  const client = world.client();
  const options = { maxAttempts: 1 };
  const post = () => world.after(1, world.post(client, "a", nothing, { options }));
  expect([await post(), await post()]).toEqual([
    { status: "queued", left: 1 },
    { status: "queued", left: 1 },
  ]);
  const failed = { id: "a", attempts: 1, error: new Error(unread) };
  expect(client.events.filter(({ type }) => type === "messageFailed")).toMatchObject([failed, failed]);
});

test("a handler that has read a message may leave the others, and one beyond its deadline gets none", async () => {
  const world = newWorld();
  const [first, second] = [world.client(), world.client()];
  let calls = 0;
  const onlyOnce: MailboxHandler<string> = async (messages) => {
    calls += 1;
    if (calls > 1) return;
    for await (const _ of messages) {
      await world.pause(50);
      return;
    }
  };
  const holding = watch(world.post(first, "a", onlyOnce));
  await world.runtime.advance(10);
  await world.after(1, world.post(second, "b"));
  await world.runtime.advance(100);
  expect([holding.value, calls]).toEqual([{ status: "handled", left: 1 }, 2]);
  const asking: MailboxHandler<string> = async (messages) => {
    await world.pause(300);
    for await (const _ of messages) expect.unreachable("there is no time for it");
  };
  const deadline = world.runtime.now() + 300;
  watch(world.post(second, "c", asking, { deadline }));
  await world.runtime.advance(500);
  expect([...first.events, ...second.events].filter(({ type }) => type === "messageFailed")).toEqual([]);
});

test("without onEvent, what fails at others' messages and what is dropped is printed, without values", async () => {
  const printed = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  try {
    const world = newWorld();
    const [first, second] = [world.client({ onEvent: undefined }), world.client()];
    const options = { maxAttempts: 2 };
    const failing: MailboxHandler<string> = async (messages) => {
      for await (const { id } of messages) {
        await world.pause(50);
        if (id === "b") throw new Error("bot is down");
      }
    };
    const post = (client: VirtualClient, id: string) =>
      world.mailbox(client.redlock, options).post({ id, value: "hidden" }, failing);
    watch(post(first, "a"));
    await world.runtime.advance(10);
    await world.after(1, post(second, "b"));
    // There is one line per kind and minute.
    await world.runtime.advance(61_000);
    await world.after(200, post(first, "c"));
    expect(printed.mock.calls).toEqual([
      ['redlock-edge: a message of mailbox "m" failed (attempt 1): bot is down'],
      ['redlock-edge: a message of mailbox "m" failed (attempt 2): bot is down'],
      [
        'redlock-edge: the message "b" has failed 2 times, and mailbox "m" drops it: to keep it, set onFailed',
      ],
    ]);
  } finally {
    printed.mockRestore();
  }
});
