import { expect, test } from "vitest";
import { outcomeOf } from "../../support/outcomes.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { never, runner } from "../../support/virtual-runs.ts";

// What a key, its scope, its kind and a fingerprint tell apart, and what is stored of them.

/** The options of a key in this scope; undefined: in none. */
const scoped = (scope: string | readonly string[] | undefined) => (scope === undefined ? {} : { scope });

test("scopes keep keys apart, and no delimiter joins them", async () => {
  const { idempotency } = runner(virtualWorld());
  const key = "key";
  const places: [scope: string | readonly string[] | undefined, key: string][] = [
    [undefined, key],
    ["a", key],
    ["b", key],
    [["a", "b"], key],
    ["a:b", key],
    [["a,b"], key],
    [["a"], `"b",${key}`],
    [["a"], `b:${key}`],
    ['a","b', key],
  ];
  for (const [index, [scope, name]] of places.entries()) {
    const outcome = await idempotency.run(name, scoped(scope), () => index);
    expect(outcome).toEqual({ status: "executed", value: index });
  }
  for (const [index, [scope, name]] of places.entries()) {
    expect(await idempotency.run(name, scoped(scope), () => -1)).toEqual({
      status: "replayed",
      value: index,
    });
  }
});

test("keys and fingerprints are stored as hashes only", async () => {
  const { idempotency, links } = runner(virtualWorld());
  const given = { scope: "tenant-47", fingerprint: "the whole body" };
  await idempotency.run("customer@example.com", given, () => 1);
  const sent = JSON.stringify(links.map((link) => link.sent));
  expect(sent).not.toMatch(/customer@example\.com|tenant-47|the whole body/);
});

test("a fingerprint may be text or bytes; without one, a run fits every fingerprint", async () => {
  const { idempotency } = runner(virtualWorld());
  const bytes = new TextEncoder().encode("amount=10");
  await idempotency.run("key", { fingerprint: "amount=10" }, () => 1);
  for (const fingerprint of ["amount=10", bytes, undefined]) {
    const outcome = await idempotency.run("key", { fingerprint }, never);
    expect(outcome).toEqual({ status: "replayed", value: 1 });
  }
  await idempotency.run("other", () => 7);
  expect(await idempotency.run("other", { fingerprint: "anything" }, never)).toMatchObject({ value: 7 });
});

test("a fingerprint is computed before the handler can change what it is of", async () => {
  const { idempotency } = runner(virtualWorld());
  const body = new TextEncoder().encode("original");
  await idempotency.run("key", { fingerprint: body }, () => {
    body.fill(0);
  });
  expect((await idempotency.run("key", { fingerprint: "original" }, never)).status).toBe("replayed");
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
