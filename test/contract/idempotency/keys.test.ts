import { expect, test } from "vitest";
import { forgetKey } from "../../../src/idempotency/index.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { put, runner } from "../../support/virtual-runs.ts";

// What a key, its scope, its kind and a fingerprint tell apart, and what is stored of them.

const never = () => expect.unreachable("nothing may run");

test("keys and fingerprints are stored as hashes only", async () => {
  const { idempotency, links } = runner(virtualWorld());
  const given = { scope: "tenant-47", fingerprint: "the whole body" };
  await idempotency.run("customer@example.com", given, () => 1);
  const sent = JSON.stringify(links.map((link) => link.sent));
  expect(sent).not.toMatch(/customer@example\.com|tenant-47|the whole body/);
});

test("a call rejects with anything that the handler throws", async () => {
  const { idempotency } = runner(virtualWorld());
  for (const thrown of [undefined, null, 0, "text", Object.freeze({ frozen: true })]) {
    expect((await outcomeOf(idempotency.run("key", () => Promise.reject(thrown)))).error).toBe(thrown);
  }
  const failure = new Error("thrown at once");
  const handler = () => {
    throw failure;
  };
  expect((await outcomeOf(idempotency.run("key", handler))).error).toBe(failure);
});

test("a key runs where a minority has a list in its place, and is forgotten everywhere", async () => {
  const world = virtualWorld();
  await put(world, ["to learn its name"]);
  const [{ engine }] = world.endpoints as [(typeof world.endpoints)[0]];
  const [name] = engine.execute(["KEYS", "*"]) as [string];
  engine.execute(["DEL", name]);
  engine.execute(["RPUSH", name, "x"]);
  const { idempotency } = runner(world);
  expect((await idempotency.run("key", () => 1)).status).toBe("executed");
  expect((await idempotency.run("key", never)).status).toBe("replayed");
  expect(await forgetKey(idempotency, "key")).toBe(true);
  expect(engine.execute(["EXISTS", name])).toBe(0);
});
