import { expect, test } from "vitest";
import { type Finding, withSynchronizers } from "../../../src/cli/finding.ts";

const free: Finding = {
  resource: "r",
  state: "free",
  why: "",
  remaining: 0,
  quorum: 2,
  votes: ["e1", "e2", "e3"].map((endpoint) => ({ endpoint, state: "free" })),
};

// What each endpoint has of its name; undefined: it has not answered.
test.each<[state: Finding["state"], kinds: string[] | undefined, found: (string[] | undefined)[]]>([
  ["free", undefined, [[], [], []]],
  ["free", undefined, [["Semaphore"], [], []]],
  ["free", undefined, [[], [], undefined]],
  ["in use", ["Semaphore"], [["Semaphore"], [], undefined]],
  ["in use", ["Semaphore"], [["Semaphore"], ["Semaphore"], undefined]],
  ["in use", ["Semaphore", "once"], [["Semaphore"], ["Semaphore", "once"], []]],
])("a free lock is %s (%j) where its synchronizers are %j", (state, kinds, found) => {
  expect(withSynchronizers(free, found)).toMatchObject(kinds ? { state, kinds } : { state });
});
