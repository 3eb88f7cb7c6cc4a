import { describe, expect, test } from "vitest";
import {
  acquiredRegister,
  counterTtl,
  heldRegister,
  holderOf,
  rollbackRegister,
} from "../../../src/lock/lock-request.ts";
import { randomToken, systemRuntime, tokenLength } from "../../../src/runtime.ts";

describe("lock requests", () => {
  const fields = { resources: ["a", "b"], prefix: "p", owner: "", fenceRetention: 0 };
  const nonce = randomToken(systemRuntime);

  test("a single resource without owner and fence: no tombstone, whole values", () => {
    const request = { ...fields, resources: ["a"], nonce };
    expect(acquiredRegister(request)).toEqual({ keys: ["p:lock:{a}"], value: nonce, from: 1 });
    expect(rollbackRegister(request)).toEqual(acquiredRegister(request));
  });

  test.each([
    ["several resources", {}],
    ["an owner", { resources: ["a"], owner: "me" }],
    ["fencing", { resources: ["a"], fenceRetention: 1_000 }],
  ])("%s: a tombstone for exactly this round, and counters", (_what, change) => {
    const request = { ...fields, ...change, nonce };
    const register = acquiredRegister(request);
    expect(register.tombstone).toBe(`p:void:{a}:${nonce}`);
    expect(register.counters).toEqual(request.resources.map((name) => `p:fence:{${name}}`));
    // Exactly what the round acquired, not what its owner holds through another handle.
    expect(rollbackRegister(request)).toEqual({ ...register, from: 1 });
  });

  test("an owner is compared without the nonce", () => {
    const register = heldRegister({ ...fields, owner: "me", nonce });
    expect(register.value.slice(register.from! - 1)).toBe("me");
    expect(nonce).toHaveLength(tokenLength);
  });

  test.each([
    [1_000, 500, 2_000],
    [1_000, 5_000, 6_000],
  ])(
    "a counter with a retention of %i ms outlives a lock of %i ms by it, and is kept twice as long",
    (retention, ttl, kept) => {
      expect(counterTtl(retention, ttl)).toBe(kept);
    },
  );

  test("holderOf is the owner, or the handle", () => {
    expect(holderOf(`${nonce}me`)).toBe("me");
    expect(holderOf(nonce)).toBe(nonce);
    expect(holderOf("")).toBe("");
  });
});
