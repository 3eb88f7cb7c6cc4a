import { afterEach, expect, test, vi } from "vitest";
import { readEvents } from "../../test/support/event-reader.ts";
import { Channels } from "../src/channels.ts";

afterEach(() => {
  vi.useRealTimers();
});

test("every stream gets a comment now and then, while there are any", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const channels = new Channels();
  const readers = [channels.subscribe("a"), channels.subscribe("b")].map(readEvents);
  for (const reader of readers) expect(await reader.next()).toMatch(/^data: subscribe,[ab],1$/);
  for (const _ of [1, 2]) {
    vi.advanceTimersToNextTimer();
    for (const reader of readers) expect(await reader.next()).toBe(": ");
  }
  await Promise.all(readers.map((reader) => reader.cancel()));
  expect([channels.subscribers("a"), channels.subscribers("b"), vi.getTimerCount()]).toEqual([0, 0, 0]);
});

test("a stream that nobody reads ends; the others stay", async () => {
  const channels = new Channels();
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
