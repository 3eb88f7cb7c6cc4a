import { expect, test } from "vitest";
import { type Observation, RequestObservation } from "../../src/rest/observe.ts";

// Who looks on at requests must not slow down others for ever: the hooks of promises are of the whole process.

/** With hooks, Node marks each promise. */
function hasPromiseHooks(): boolean {
  return Object.getOwnPropertySymbols(Promise.resolve()).length > 0;
}

test("promises have hooks only while somebody looks on", async () => {
  const before = hasPromiseHooks();
  const observation = new RequestObservation();
  const steps: Observation[] = [];
  observation.observe((step) => steps.push(step));
  const request = () => new Request("http://localhost/", { method: "POST", body: "[]" });
  const answer = async () => new Response("ok");
  await observation.answer(request(), "1", answer);
  expect(hasPromiseHooks()).toBe(true);
  expect(steps.map(({ phase }) => phase)).toEqual(["arrived", "ended"]);
  observation.observe(undefined);
  await observation.answer(request(), "1", answer);
  expect(steps).toHaveLength(2);
  expect(hasPromiseHooks()).toBe(before);
});
