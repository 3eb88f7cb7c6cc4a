import { expect, test } from "vitest";
import { readEvents } from "../../test/support/event-reader.ts";
import { Channels } from "../src/channels.ts";

/** Channels whose timer the test fires. */
function rig() {
  const due: (() => void)[] = [];
  const channels = new Channels((_, callback) => due.push(callback));
  const beat = () => {
    const [callback, ...more] = due.splice(0);
    expect(more).toEqual([]);
    callback?.();
  };
  return { channels, due, beat };
}

test("every stream gets a comment now and then, while there are any", async () => {
  const { channels, due, beat } = rig();
  const readers = [channels.subscribe("a"), channels.subscribe("b")].map(readEvents);
  for (const reader of readers) expect(await reader.next()).toMatch(/^data: subscribe,[ab],1$/);
  expect(due).toHaveLength(1);
  beat();
  for (const reader of readers) expect(await reader.next()).toBe(": ");
  await Promise.all(readers.map((reader) => reader.cancel()));
  expect([channels.subscribers("a"), channels.subscribers("b")]).toEqual([0, 0]);
  beat();
  expect(due).toEqual([]);
});

test("a stream that nobody reads ends; the others stay", async () => {
  const { channels } = rig();
  const [idle, busy] = [channels.subscribe("c"), channels.subscribe("c")] as const;
  const reader = readEvents(busy);
  await reader.next();
  for (let message = 0; message < 1_100; message += 1) {
    channels.publish("c", String(message));
    expect(await reader.next()).toBe(`data: message,c,${message}`);
  }
  expect(channels.subscribers("c")).toBe(1);
  await expect(idle.getReader().read()).rejects.toThrow("not read");
});

test("a message of several lines is one event", async () => {
  const { channels } = rig();
  const reader = readEvents(channels.subscribe("d"));
  await reader.next();
  expect(channels.publish("d", "one\r\ntwo\nthree")).toBe(1);
  expect(await reader.next()).toBe("data: message,d,one\ndata: two\ndata: three");
});
