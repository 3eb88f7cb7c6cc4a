import { expect, test } from "vitest";
import { completeText, countText, pendingText } from "../../../src/idempotency/record.ts";
import { parseValue, tokensIn } from "../../../src/stored/index.ts";

const token = `t${"7".repeat(32)}`;
const told = (kind: string, text: string) => parseValue({ kind }, text);

test("who holds it is named by the owner's token, or by the handle's random name", () => {
  const hold = (holder: string) => ({ type: "hold", holder });
  expect(told("lock", token)).toEqual(hold(token));
  expect(told("slot", `${token}me`)).toEqual(hold("me"));
  // Of a hold that several handles share.
  expect(told("reentrant", `s${"0".repeat(32)}me`)).toEqual(hold("me"));
  expect(told("once", `r12:${token}`)).toEqual(hold(token));
  expect(told("read-write", `${token}r`)).toEqual(hold("r"));
});

test("a record says how a run stands, and since when", () => {
  const record = { token, fingerprint: "ab", startedAt: 1_700, completedAt: 1_800 };
  const common = { type: "record", fingerprint: "ab" };
  expect(told("idem", pendingText(record))).toEqual({ ...common, state: "pending", since: 1_700 });
  const done = { ...common, state: "complete", since: 1_800 };
  expect(told("flight", completeText({ ...record, result: "{}" }))).toEqual({ ...done, result: "{}" });
  const unstored = "too-large";
  expect(told("idem", completeText({ ...record, unstored }))).toEqual({ ...done, unstored });
  expect(told("idem", `P1 ${token} 5 -`)).toEqual({ type: "record", state: "pending", since: 5 });
  expect(told("idem", "OK")).toEqual({ type: "record", state: "corrupt" });
});

test("the count of a key's runs", () => {
  expect(told("tries", countText({ token, count: 3 }))).toEqual({ type: "count", attempts: 3 });
  expect(told("tries", "3")).toBeUndefined();
});

test("other kinds say nothing", () => {
  expect(told("queue", `${token}:17`)).toBeUndefined();
});

test("the random names in a text", () => {
  expect(tokensIn(pendingText({ token, startedAt: 1, fingerprint: "-" }))).toEqual([token]);
  expect(tokensIn("t123")).toEqual([]);
});
