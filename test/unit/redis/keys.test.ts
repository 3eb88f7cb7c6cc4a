import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseKey } from "../../../src/inspect/stored-key.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { slotOf } from "../../support/cluster-slot.ts";

const seed = Date.now() % 2 ** 31;
console.log(`keys SEED=${seed}`);

// Names built from the parts of keys, which are the likeliest to collide, and from any other characters.
const odd = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom("{", "}", ":", "%", "7", "D", "a", "::") }),
  fc.string({ minLength: 1, maxLength: 12, unit: "grapheme" }),
  fc.constantFrom("lock", "fence", "{lock}", ":{a}", "%7D", "}", "{", "{}", "{}{a}", "a{b}c{d}", "{{a}}"),
);
const kinds = ["lock", "fence", "void", "idem"];
const prefixes = fc.constantFrom("redlock", "redlock:lock:", "redlock:lock", "redlock:", "redlock:lock::x");

describe("keyOf", () => {
  test.each([
    ["invoice:42", "redlock:lock:{invoice:42}"],
    ["order{tenant-7}:9", "redlock:lock:{tenant-7}:order{tenant-7}:9"],
    ["{a}", "redlock:lock:{a}:{a}"],
    ["{}a", "redlock:lock:{{%7Da}"],
    // Redis Cluster looks at the first brace only.
    ["{}{a}", "redlock:lock:{{%7D{a%7D}"],
    ["a}b", "redlock:lock:{a%7Db}"],
    ["100%", "redlock:lock:{100%25}"],
    ["{open", "redlock:lock:{{open}"],
  ])("of %s is %s", (resource, key) => {
    expect(keyOf("redlock", "lock", resource)).toBe(key);
  });

  test("has one Redis Cluster slot for all kinds of a resource", () => {
    fc.assert(
      fc.property(odd, fc.constantFrom("redlock", "my:app", "ä"), (resource, prefix) => {
        const slots = kinds.map((kind) => slotOf(keyOf(prefix, kind, resource)));
        slots.push(slotOf(`${keyOf(prefix, "void", resource)}:t0123`));
        expect(new Set(slots).size).toBe(1);
      }),
      { seed, numRuns: 1_000 },
    );
  });

  test("lets resources with one tag share a slot, and spreads the others", () => {
    const tagged = ["a{t}", "b{t}", "{t}"].map((name) => slotOf(keyOf("redlock", "lock", name)));
    expect(new Set(tagged)).toEqual(new Set([slotOf("t")]));
    const spread = Array.from({ length: 50 }, (_, index) => slotOf(keyOf("redlock", "lock", `r${index}`)));
    expect(new Set(spread).size).toBeGreaterThan(45);
  });
});

describe("parseKey", () => {
  test("takes apart what keyOf has made, so two keys are equal only if all of their parts are", () => {
    fc.assert(
      fc.property(odd, prefixes, (resource, prefix) => {
        for (const kind of ["lock", "fence", "idem", "once-end"]) {
          const key = keyOf(prefix, kind, resource);
          expect(parseKey(key)).toEqual({ key, prefix, kind, resource });
        }
        const slot = keyOf(prefix, "slot:12", resource);
        expect(parseKey(slot)).toEqual({ key: slot, prefix, kind: "slot", slot: 12, resource });
        const tombstone = `${keyOf(prefix, "void", resource)}:t0123`;
        expect(parseKey(tombstone)).toEqual({ key: tombstone, prefix, kind: "void", resource });
      }),
      { seed, numRuns: 3_000 },
    );
  });

  test.each(["session:{42}", "cache", "a:b:{}", "a:B:{c}", "a:lock:{b}c", "{x}a:lock:{b}"])(
    "does not know %s",
    (key) => {
      expect(parseKey(key)).toBeUndefined();
    },
  );
});
