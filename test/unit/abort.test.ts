import { getEventListeners } from "node:events";
import { expect, test, vi } from "vitest";
import { onAbort } from "../../src/runtime/abort.ts";

test("callbacks of one signal share a listener, which ends with the last of them", () => {
  const controller = new AbortController();
  const listeners = () => getEventListeners(controller.signal, "abort").length;
  const callback = vi.fn();
  const cancels = Array.from({ length: 20 }, () => onAbort(controller.signal, callback));
  expect(listeners()).toBe(1);
  for (const cancel of cancels.slice(1)) cancel();
  expect(listeners()).toBe(1);
  cancels[0]!();
  expect(listeners()).toBe(0);
  // Each is called once, and those that were cancelled are not.
  onAbort(controller.signal, callback);
  onAbort(controller.signal, callback);
  controller.abort();
  expect(callback).toHaveBeenCalledTimes(2);
});
