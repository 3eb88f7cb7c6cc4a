import { expect, test, vi } from "vitest";
import { emit, newId } from "../../src/events.ts";

test("emit calls the hook with the event", () => {
  const hook = vi.fn();
  const event = { type: "lost" };
  emit(hook, event);
  expect(hook.mock.calls).toEqual([[event]]);
  expect(hook.mock.calls[0]![0]).toBe(event);
});

test("emit works without a hook", () => {
  expect(() => emit(undefined, {})).not.toThrow();
});

test("emit survives a hook that throws", () => {
  const hook = () => {
    throw new Error("the hook's own");
  };
  expect(() => emit(hook, {})).not.toThrow();
});

test("emit survives a hook that rejects", async () => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  try {
    // No mock: one would handle the rejection itself.
    emit(() => Promise.reject(new Error("the hook's own")) as never, {});
    // Rejections are reported before the next immediate runs.
    await new Promise((resolve) => setImmediate(resolve));
    expect(unhandled).not.toHaveBeenCalled();
  } finally {
    process.off("unhandledRejection", unhandled);
  }
});

test("newId counts up: no number is used twice", () => {
  const first = newId();
  expect([newId(), newId()]).toEqual([first + 1, first + 2]);
  expect(first).toBeGreaterThan(0);
});
