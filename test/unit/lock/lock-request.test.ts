import { expect, test } from "vitest";
import { acquiredCell } from "../../../src/lock/lock-request.ts";
import { randomToken, systemRuntime } from "../../../src/runtime.ts";

const nonce = randomToken(systemRuntime);

test("a single resource without a fence has no tombstone", () => {
  const request = { resources: ["a"], prefix: "p", keys: ["p:lock:{a}"], fenceRetention: 0, nonce };
  expect(acquiredCell(request)).toEqual({ keys: ["p:lock:{a}"], value: nonce });
});

test.each([
  ["several resources", ["a", "b"], 0],
  ["fencing", ["a"], 1_000],
])("%s: a tombstone for exactly this round, and counters", (_what, resources, fenceRetention) => {
  const keys = resources.map((name) => `p:lock:{${name}}`);
  expect(acquiredCell({ resources, prefix: "p", keys, fenceRetention, nonce })).toEqual({
    keys,
    value: nonce,
    tombstone: `p:void:{a}:${nonce}`,
    counters: resources.map((name) => `p:fence:{${name}}`),
  });
});
