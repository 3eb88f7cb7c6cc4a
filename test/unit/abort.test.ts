import { getEventListeners } from "node:events";
import { expect, test, vi } from "vitest";
import { onAbort } from "../../src/runtime/abort.ts";

test("callbacks of one signal share a listener, which ends with the last of them", () => {
  const { signal } = new AbortController();
  const listeners = () => getEventListeners(signal, "abort").length;
  const callback = vi.fn();
  const cancels = Array.from({ length: 20 }, () => onAbort(signal, callback));
  expect(listeners()).toBe(1);
  cancels.slice(1).forEach((cancel) => void cancel());
  expect(listeners()).toBe(1);
  cancels[0]!();
  expect(listeners()).toBe(0);
  onAbort(signal, callback);
  expect(listeners()).toBe(1);
  // A second time it ends nothing that others have begun.
  cancels[0]!();
  expect(listeners()).toBe(1);
});

test("each is called once when the signal aborts, unless it was cancelled before", () => {
  const controller = new AbortController();
  const [callback, cancelled] = [vi.fn(), vi.fn()];
  onAbort(controller.signal, callback);
  onAbort(controller.signal, callback);
  onAbort(controller.signal, cancelled)();
  controller.abort();
  expect(callback).toHaveBeenCalledTimes(2);
  expect(cancelled).not.toHaveBeenCalled();
});
