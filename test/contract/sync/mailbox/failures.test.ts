import { describe, expect, test, vi } from "vitest";
import { LockLostError } from "../../../../src/index.ts";
import type { FailedMessage, MailboxHandler } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { never, newWorld, nothing, ttl } from "./world.ts";

// Handlers that fail, take too long, or do not read what waits.

describe.each([1, 3])("a mailbox on %i endpoints", (count) => {
  test("lets the others go on where the handler fails at one, and tries that one first in the next turn", async () => {
    const { first, second, hold, post, within, runtime, pause } = newWorld(count);
    const attempts: [string, number][] = [];
    const failing: MailboxHandler<string> = async (messages) => {
      for await (const { value, attempt } of messages) {
        attempts.push([value, attempt]);
        await pause(20);
        if (value === "a" && attempt < 3) throw new Error("refused by the bank");
      }
    };
    const holding = await hold(failing);
    await within(1, post(second, "b", failing));
    await runtime.advance(100);
    expect(holding.error).toEqual(new Error("refused by the bank"));
    await within(100, post(second, "c", failing));
    await within(100, post(first, "a", failing));
    expect(attempts.map(String)).toEqual(["a,1", "b,1", "a,2", "c,1", "a,3"]);
    expect(first.events.filter(({ type }) => type === "messageFailed")).toMatchObject([
      { id: "a", attempts: 1 },
    ]);
  });

  test("gives up a message that has failed as often as it may, even if its process has ended", async () => {
    const { first, second, hold, post, end, within, runtime } = newWorld(count);
    const given: FailedMessage<string>[] = [];
    const options = { maxAttempts: 2, onFailed: (message: FailedMessage<string>) => given.push(message) };
    await hold(never, { options });
    end(first);
    await runtime.advance(ttl);
    const error = new Error("no");
    const failing: MailboxHandler<string> = async (messages) => {
      for await (const { value } of messages) if (value === "a") throw error;
    };
    const statuses = [];
    for (const text of ["b", "a"]) {
      statuses.push((await within(10, post(second, text, failing, { options }))).status);
    }
    expect(statuses).toEqual(["handled", "duplicate"]);
    expect(given).toEqual([{ id: "a", value: "a", attempts: 2, error }]);
  });

  test("ends with a handler that reads nothing; what it has not read stays", async () => {
    const { first, leave, post, within, handled } = newWorld(count);
    expect(await within(1, post(first, "a", nothing))).toEqual({ status: "queued", left: 1 });
    expect(await leave(["b"])).toEqual(["handled"]);
    expect(handled).toEqual(["a", "b"]);
  });
});

const unread =
  "the handler returned without reading a message, so none counts as handled: use for await (const { id, value } of messages)";

test("a message whose turn is lost comes first in the next turn, and a call tries it for as long as it may wait", async () => {
  const { second, hold, leave, runtime, handled, pause, mailbox, within } = newWorld();
  const handlerOf =
    (...times: number[]): MailboxHandler<string> =>
    async (messages, turn) => {
      for await (const { value } of messages) {
        await pause(times.shift() ?? 1);
        if (turn.remaining() <= 0) return;
        handled.push(value);
      }
    };
  const options = { maxHold: ttl };
  const holding = await hold(handlerOf(3_000, 3_000), { options, wait: 5_000 });
  await leave(["b"]);
  await runtime.advance(8_000);
  expect(holding.error).toBeInstanceOf(LockLostError);
  const drain = mailbox(second.redlock, options).drain(handlerOf(3_000), { wait: 5_000 });
  expect(await within(5_000, drain)).toEqual({ handled: 2, left: 0 });
  expect(handled).toEqual(["a", "b"]);
});

test("a handler that never asks for a message is reported, and counts as no attempt", async () => {
  const { first, post, within } = newWorld();
  const options = { maxAttempts: 1 };
  for (let time = 0; time < 2; time += 1) {
    const posted = await within(1, post(first, "a", nothing, { options }));
    expect(posted).toEqual({ status: "queued", left: 1 });
  }
  const failed = { id: "a", attempts: 1, error: new Error(unread) };
  expect(first.events.filter(({ type }) => type === "messageFailed")).toMatchObject([failed, failed]);
});

test("a handler that has read a message may leave the others, and one beyond its deadline gets none", async () => {
  const { first, second, hold, leave, post, runtime, pause } = newWorld();
  let calls = 0;
  const holding = await hold(async (messages) => {
    calls += 1;
    if (calls > 1) return;
    for await (const _ of messages) {
      await pause(50);
      return;
    }
  });
  await leave(["b"]);
  await runtime.advance(100);
  expect([holding.value, calls]).toEqual([{ status: "handled", left: 1 }, 2]);
  const asking: MailboxHandler<string> = async (messages) => {
    await pause(300);
    for await (const _ of messages) expect.unreachable("there is no time for it");
  };
  watch(post(second, "c", asking, { deadline: runtime.now() + 300 }));
  await runtime.advance(500);
  expect([...first.events, ...second.events].filter(({ type }) => type === "messageFailed")).toEqual([]);
});

test("without onEvent, what fails at others' messages and what is dropped is printed, without values", async () => {
  using printed = vi.spyOn(console, "warn").mockReturnValue();
  const { client, second, mailbox, runtime, pause, within } = newWorld();
  const silent = client({ onEvent: undefined });
  const failing: MailboxHandler<string> = async (messages) => {
    for await (const { id } of messages) {
      await pause(50);
      if (id === "b") throw new Error("bot is down");
    }
  };
  const post = ({ redlock }: VirtualClient, id: string) =>
    mailbox(redlock, { maxAttempts: 2 }).post({ id, value: "hidden" }, failing);
  watch(post(silent, "a"));
  await runtime.advance(10);
  await within(1, post(second, "b"));
  // There is one line per kind and minute.
  await runtime.advance(61_000);
  await within(200, post(silent, "c"));
  expect(printed.mock.calls.flat()).toEqual([
    'redlock-edge: a message of mailbox "m" failed (attempt 1): bot is down',
    'redlock-edge: a message of mailbox "m" failed (attempt 2): bot is down',
    'redlock-edge: the message "b" has failed 2 times, and mailbox "m" drops it: to keep it, set onFailed',
  ]);
});
