import { describe, expect, test } from "vitest";
import { acquiredCell, rollbackCell } from "../../../src/lock/lock-request.ts";
import { randomToken, systemRuntime } from "../../../src/runtime.ts";

describe("lock requests", () => {
  const fields = { resources: ["a", "b"], prefix: "p", owner: "", fenceRetention: 0 };
  const nonce = randomToken(systemRuntime);

  test("a single resource without owner and fence: no tombstone, whole values", () => {
    const request = { ...fields, resources: ["a"], nonce };
    expect(acquiredCell(request)).toEqual({ keys: ["p:lock:{a}"], value: nonce, compareFrom: 1 });
    expect(rollbackCell(request)).toEqual(acquiredCell(request));
  });

  test.each([
    ["several resources", {}],
    ["an owner", { resources: ["a"], owner: "me" }],
    ["fencing", { resources: ["a"], fenceRetention: 1_000 }],
  ])("%s: a tombstone for exactly this round, and counters", (_what, change) => {
    const request = { ...fields, ...change, nonce };
    const cell = acquiredCell(request);
    expect(cell.tombstone).toBe(`p:void:{a}:${nonce}`);
    expect(cell.counters).toEqual(request.resources.map((name) => `p:fence:{${name}}`));
    // Exactly what the round acquired, not what its owner holds through another handle.
    expect(rollbackCell(request)).toEqual({ ...cell, compareFrom: 1 });
  });
});
