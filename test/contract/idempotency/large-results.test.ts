import { expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import type { Endpoint } from "../../../src/endpoints/endpoint.ts";
import { EndpointError } from "../../../src/errors.ts";
import { Idempotency } from "../../../src/idempotency/index.ts";
import { Redlock } from "../../../src/redlock.ts";

/** Refuses what is large: `late` ms after it came. */
function refusing(name: string, late: number, uploads: string[]): Endpoint {
  const memory = memoryEndpoint({ name });
  const send: Endpoint["send"] = async (command, signal) => {
    if (JSON.stringify(command).length < 10_000) return memory.send(command, signal);
    uploads.push(name);
    if (late > 0) await new Promise((resolve) => setTimeout(resolve, late));
    throw new EndpointError(name, "http", "HTTP 413, no usable reply", { status: 413 });
  };
  return { name, dialect: memory.dialect, exactReplies: true, send };
}

test("endpoints that refuse a result for its size after the decision count, too", async () => {
  const uploads: string[] = [];
  const down = memoryEndpoint({ name: "down" });
  const background: Promise<unknown>[] = [];
  const late = [refusing("late 1", 20, uploads), refusing("late 2", 20, uploads)];
  const endpoints = [refusing("a", 0, uploads), down, refusing("b", 0, uploads), ...late];
  const redlock = new Redlock({ endpoints, waitUntil: (promise) => background.push(promise) });
  const idempotency = new Idempotency(redlock, { lease: 1_000 });
  const large = "x".repeat(10_000);
  // With the endpoint that is down, two refusals already mean that no quorum stores the result.
  const outcome = await idempotency.run("k", () => {
    down.stop();
    return large;
  });
  expect(outcome).toEqual({ status: "executed", value: large, unstored: "too-large" });
  await Promise.all(background);
  expect(uploads.sort()).toEqual(["a", "b", "late 1", "late 2"]);
  await expect(
    idempotency.run("k", () => expect.unreachable("the effect has happened")),
  ).rejects.toMatchObject({
    code: "RESULT_UNAVAILABLE",
    reason: "too-large",
  });
});
