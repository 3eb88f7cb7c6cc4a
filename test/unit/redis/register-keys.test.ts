import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  acquiredRegister,
  heldRegister,
  holderOf,
  newLockRequest,
  rollbackRegister,
} from "../../../src/lock/lock-request.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { randomToken, systemRuntime, tokenLength } from "../../../src/runtime.ts";
import { slotOf } from "../../support/cluster-slot.ts";

const seed = Date.now() % 2 ** 31;
console.log(`register-keys SEED=${seed}`);

// Names made of what keys are made of, where a confusion would lurk, and of anything else.
const odd = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom("{", "}", ":", "%", "7", "D", "a", "::") }),
  fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }),
  fc.constantFrom("lock", "fence", "{lock}", ":{a}", "%7D", "}", "{", "{}", "{}{a}", "a{b}c{d}", "{{a}}"),
);
const kinds = ["lock", "fence", "void", "idem"];

describe("slotOf", () => {
  // The specification's check value and examples.
  test.each([
    ["123456789", 0x31c3],
    ["foo", 12_182],
    ["{user1000}.following", slotOf("user1000")],
    ["foo{}{bar}", 8_363],
    ["foo{{bar}}zap", slotOf("{bar")],
    ["foo{bar}{zap}", slotOf("bar")],
  ])("of %s is %i", (key, slot) => {
    expect(slotOf(key)).toBe(slot);
  });
});

describe("keyOf", () => {
  test.each([
    ["invoice:42", "redlock:lock:{invoice:42}"],
    ["order{tenant-7}:9", "redlock:lock:{tenant-7}:order{tenant-7}:9"],
    ["{a}", "redlock:lock:{a}:{a}"],
    ["{}a", "redlock:lock:{{%7Da}"],
    ["a}b", "redlock:lock:{a%7Db}"],
    ["100%", "redlock:lock:{100%25}"],
    ["{open", "redlock:lock:{{open}"],
  ])("of %s is %s", (resource, key) => {
    expect(keyOf("redlock", "lock", resource)).toBe(key);
  });

  test("is different for different resources and kinds", () => {
    fc.assert(
      fc.property(odd, odd, fc.constantFrom(...kinds), fc.constantFrom(...kinds), (a, b, kind, other) => {
        const same = a === b && kind === other;
        expect(keyOf("redlock", kind, a) === keyOf("redlock", other, b)).toBe(same);
      }),
      { seed, numRuns: 20_000 },
    );
  });

  test("is different for different prefixes, also where one is the beginning of the other", () => {
    const prefixes = fc.constantFrom(
      "redlock",
      "redlock:lock:",
      "redlock:lock",
      "redlock:",
      "redlock:lock::x",
    );
    fc.assert(
      fc.property(odd, odd, prefixes, prefixes, (a, b, prefix, other) => {
        const keys = kinds.map((kind) => keyOf(prefix, kind, a));
        const others = kinds.map((kind) => keyOf(other, kind, b));
        const same = a === b && prefix === other;
        expect(keys.some((key) => others.includes(key))).toBe(same);
      }),
      { seed, numRuns: 20_000 },
    );
    expect(keyOf("redlock", "lock", "lock:{x}")).not.toBe(keyOf("redlock:lock:", "lock", "x"));
  });

  test("has one Redis Cluster slot for all kinds of a resource", () => {
    fc.assert(
      fc.property(odd, fc.constantFrom("redlock", "my:app", "ä"), (resource, prefix) => {
        const slots = kinds.map((kind) => slotOf(keyOf(prefix, kind, resource)));
        slots.push(slotOf(`${keyOf(prefix, "void", resource)}:t0123`));
        expect(new Set(slots).size).toBe(1);
      }),
      { seed, numRuns: 5_000 },
    );
  });

  test("lets resources with one tag share a slot, and spreads the others", () => {
    const tagged = ["a{t}", "b{t}", "{t}"].map((name) => slotOf(keyOf("redlock", "lock", name)));
    expect(new Set(tagged)).toEqual(new Set([slotOf("t")]));
    const spread = Array.from({ length: 50 }, (_, index) => slotOf(keyOf("redlock", "lock", `r${index}`)));
    expect(new Set(spread).size).toBeGreaterThan(45);
  });
});

describe("grants", () => {
  const request = { resources: ["a", "b"], prefix: "p", owner: "", fenceRetention: 0 };
  const nonce = randomToken(systemRuntime);

  test("newGrant has a nonce of its own each time", () => {
    const nonces = Array.from({ length: 100 }, () => newLockRequest(systemRuntime, request).nonce);
    expect(new Set(nonces).size).toBe(100);
  });

  test("a single resource without owner and fence is plain: no tombstone, whole values", () => {
    const grant = { ...request, resources: ["a"], nonce };
    expect(acquiredRegister(grant)).toEqual({ keys: ["p:lock:{a}"], value: nonce, from: 1 });
    expect(rollbackRegister(grant)).toEqual(acquiredRegister(grant));
  });

  test.each([
    ["several resources", {}],
    ["an owner", { resources: ["a"], owner: "me" }],
    ["fencing", { resources: ["a"], fenceRetention: 1_000 }],
  ])("%s have a tombstone for this very round, and counters", (_what, change) => {
    const grant = { ...request, ...change, nonce };
    const register = acquiredRegister(grant);
    expect(register.tombstone).toBe(`p:void:{a}:${nonce}`);
    expect(register.counters).toEqual(grant.resources.map((name) => `p:fence:{${name}}`));
    // Exactly what the round took, not what its owner holds by another handle.
    expect(rollbackRegister(grant)).toEqual({ ...register, from: 1 });
  });

  test("an owner is compared without the nonce", () => {
    const register = heldRegister({ ...request, owner: "me", nonce });
    expect(register.value.slice(register.from! - 1)).toBe("me");
    expect(nonce).toHaveLength(tokenLength);
  });

  test("holderOf is the owner, or the handle", () => {
    expect(holderOf(`${nonce}me`)).toBe("me");
    expect(holderOf(nonce)).toBe(nonce);
    expect(holderOf("")).toBe("");
  });
});
