import { describe, expect, test } from "vitest";
import { readRequest } from "../sim/request.ts";
import { doubleGrants, type Execution } from "./executions.ts";

/** An execution of SET NX with a ttl of 100 ms at endpoint r0, between `from` and a ms later. */
function acquired(value: string, from: number, more: Partial<Execution> = {}): Execution {
  const command = ["SET", "redlock:lock:{a}", value, "NX", "PX", "100"];
  const request = readRequest(command);
  return { endpoint: "r0", command, request, from, to: from + 1, reply: "OK", granted: true, ...more };
}

/** A release of a value that arrived at `from`. */
function released(value: string, from: number, more: Partial<Execution> = {}): Execution {
  const command = ["DELEX", "redlock:lock:{a}", "IFEQ", value];
  return acquired(value, from, { command, request: readRequest(command), reply: 1, ...more });
}

const lost = { target: "r0", from: 20, to: 30 };

describe("doubleGrants", () => {
  test("finds a lock that was given away before its ttl was over", () => {
    const [first, second] = [acquired("one", 0), acquired("two", 90)];
    expect(doubleGrants([first, second], [])).toEqual([[first, second]]);
    expect(doubleGrants([first, second], [{ ...lost, target: "r1" }])).toEqual([[first, second]]);
    expect(doubleGrants([first, released("one", 95), second], [])).toEqual([[first, second]]);
  });

  test("excepts what a ttl, a release, a refusal, another endpoint or a loss of memory explains", () => {
    const first = acquired("one", 0);
    expect(doubleGrants([first, acquired("two", 99)], [])).toEqual([]);
    expect(doubleGrants([first, released("one", 10), acquired("two", 50)], [])).toEqual([]);
    const unanswered = { to: Number.POSITIVE_INFINITY, reply: undefined, granted: false };
    expect(doubleGrants([first, released("one", 10, unanswered), acquired("two", 50)], [])).toEqual([]);
    expect(doubleGrants([first, acquired("two", 50, { reply: null, granted: false })], [])).toEqual([]);
    expect(doubleGrants([first, acquired("two", 50, { endpoint: "r1" })], [])).toEqual([]);
    expect(doubleGrants([first, acquired("two", 50)], [lost])).toEqual([]);
  });
});
