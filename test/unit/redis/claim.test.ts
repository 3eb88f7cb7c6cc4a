import { expect, test } from "vitest";
import { Deadline } from "../../../src/endpoints/deadline.ts";
import type { Command, Dialect } from "../../../src/endpoints/endpoint.ts";
import type { EndpointRequest } from "../../../src/endpoints/endpoint-request.ts";
import { claimScript } from "../../../src/redis/claim.lua.ts";
import { beginClaim, type ClaimKeys, endClaim, extendClaim } from "../../../src/redis/claim.ts";
import { textOf } from "../../../src/redis/script.ts";

// What a claim sends to one endpoint, and what it makes of the reply.

const keys: ClaimKeys = {
  record: "record",
  pending: "P",
  locks: ["lock1", "lock2"],
  token: "token",
  counters: ["fence1", "fence2"],
};
const fencing = { least: 5_000, retention: 10_000 };

/** A call to an endpoint that gives this reply. */
function rig(reply: unknown, dialect: Dialect = "redis") {
  const sent: Command[] = [];
  const send = async (command: Command) => {
    sent.push(command);
    return reply;
  };
  const cost = { requests: 0, commands: 0 };
  const call: EndpointRequest = {
    endpoint: { name: "e", dialect, exactReplies: true, send },
    deadline: new Deadline(),
    cost,
  };
  return { call, sent, cost };
}

const begin = (call: EndpointRequest) => beginClaim(call, keys, 1_000, fencing);
const operations = {
  begin,
  extend: (call: EndpointRequest) => extendClaim(call, keys, 1_000),
  end: (call: EndpointRequest) => endClaim(call, keys, "C", 60_000),
};

test.each([
  [["token", 7, "5001"], { outcome: "granted", fence: 5_001 }],
  [[0, 3, "r", "C1"], { outcome: "held", other: "C1" }],
  [[0, 3, "l", 700, "tother"], { outcome: "held", retryAfter: 700, holder: "tother" }],
])("the reply %j to a begin means %j", async (reply, answer) => {
  const { call, cost } = rig(reply);
  expect(await begin(call)).toEqual(answer);
  expect(cost).toEqual({ requests: 1, commands: 1 + Number(reply[1]) });
});

test.each(["extend", "end"] as const)("the reply to an %s says whether it was this claim's", async (name) => {
  expect(await operations[name](rig(["token", 4]).call)).toEqual({ outcome: "granted" });
  expect(await operations[name](rig([0, 4]).call)).toEqual({ outcome: "lost" });
});

test.each(["begin", "extend", "end"] as const)("%s has no other reply", async (name) => {
  const replies = [null, "OK", { 0: "token", 1: 1 }, ["token"], ["token", "4"], ["other", 4], [1, 4]];
  for (const reply of replies) {
    await expect(operations[name](rig(reply).call), JSON.stringify(reply)).rejects.toThrow(/unexpected/);
  }
});

test.each([
  [0, 3, "x", "C1"],
  [0, 3, "r", 5],
  [0, 3, "l", "700", "tother"],
  [0, 3, "l", 700],
  ["token", 3, "x"],
])("a begin has no such reply: %j %j %j %j", async (...reply) => {
  await expect(begin(rig(reply).call)).rejects.toThrow(/ reply/);
});

test.each([
  ["begin", begin, "begin P token 2 1000  5000 10000", true],
  [
    "raise",
    (call: EndpointRequest) => extendClaim(call, keys, 0, fencing),
    "extend P token 2 0  5000 10000",
    true,
  ],
  ["extend", operations.extend, "extend P token 2 1000  0 0", false],
  ["end", operations.end, "end P token 2 60000 C 0 0", false],
  ["free", (call: EndpointRequest) => endClaim(call, keys), "end P token 2 0  0 0", false],
])(
  "%s sends one command, with the counters only where it changes them",
  async (_, perform, words, counts) => {
    for (const dialect of ["redis", "redis-8.4", "upstash"] as const) {
      const { call, sent } = rig(["token", 4, "5001"], dialect);
      await perform(call);
      const names = counts ? "5 record lock1 lock2 fence1 fence2" : "3 record lock1 lock2";
      const isNative = dialect === "redis" ? 0 : 1;
      const text = textOf(claimScript.source, dialect);
      expect(sent.map((command) => command.join(" "))).toEqual([
        `EVAL ${text} ${names} ${words} ${isNative}`,
      ]);
    }
  },
);
