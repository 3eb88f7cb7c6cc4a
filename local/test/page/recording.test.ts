import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { Clients } from "../../src/page/clients.ts";
import { Recording } from "../../src/page/recording.ts";
import type { Observation } from "../../src/rest/observe.ts";
import type { WireReply } from "../../src/rest/redis/resp.ts";

const token = `t${"1".repeat(32)}`;
const key = keyOf("redlock", "lock", "a");
const acquire = ["SET", key, token, "NX", "PX", "1000"];

function started() {
  const recording = new Recording(new Clients());
  const arrived = (request: number, at: number, commands: unknown = acquire, connection = "1"): void =>
    recording.observe("e1", {
      phase: "arrived",
      request,
      at,
      connection,
      agent: "node",
      path: Array.isArray(commands) && Array.isArray(commands[0]) ? "/pipeline" : "/",
      body: Buffer.from(JSON.stringify(commands)),
    });
  const executed = (request: number, at: number, reply: WireReply = Buffer.from("OK"), command = acquire) =>
    recording.observe("e1", { phase: "executed", request, at, command, outcome: { reply, billed: 1 } });
  const ended = (request: number, at: number, status: Extract<Observation, { phase: "ended" }>["status"]) =>
    recording.observe("e1", { phase: "ended", request, at, status });
  return { recording, arrived, executed, ended };
}

describe("a recording", () => {
  test("of a request has what it was and how it ended, by its client", () => {
    const { recording, arrived, executed, ended } = started();
    arrived(1, 10);
    executed(1, 12);
    ended(1, 15, 200);
    expect(recording.rows()).toMatchObject([{ client: "" }]);
    recording.nameClients(20);
    expect(recording.rows()).toEqual([
      {
        id: "e1-1",
        at: 10,
        client: "node A",
        endpoint: "e1",
        operation: "acquire",
        resource: "a",
        result: "granted",
        failed: false,
        billed: 1,
        ms: 5,
      },
    ]);
  });

  test("shows what faults do: lost, executed twice, refused", () => {
    const { recording, arrived, executed, ended } = started();
    for (const request of [1, 2, 3, 4, 5]) arrived(request, request);
    ended(1, 10, undefined);
    executed(2, 11);
    ended(2, 12, undefined);
    executed(3, 13);
    executed(3, 14, null);
    ended(3, 15, 200);
    ended(4, 16, 503);
    expect(recording.rows().map(({ result, failed }) => [result, failed])).toEqual([
      ["under way", false],
      ["HTTP 503", true],
      ["held, executed twice", false],
      ["reply lost", true],
      ["request lost", true],
    ]);
  });

  test("does not quote errors, and knows that a script that is not cached is not a failure", () => {
    const { recording, arrived, executed, ended } = started();
    arrived(1, 0);
    executed(1, 1, new ReplyError("ERR value secret-token"));
    ended(1, 2, 400);
    arrived(2, 3, ["EVALSHA", "0".repeat(40), "1", key, "release"]);
    executed(2, 4, new ReplyError("NOSCRIPT No matching script"), ["EVALSHA"]);
    ended(2, 5, 400);
    expect(recording.rows().map(({ result, failed }) => [result, failed])).toEqual([
      ["script not cached", false],
      ["error ERR", true],
    ]);
  });

  test("has one row for all commands of a pipeline", () => {
    const { recording, arrived, executed, ended } = started();
    arrived(1, 0, [acquire, ["GET", "b"]]);
    executed(1, 1);
    executed(1, 2, null, ["GET", "b"]);
    ended(1, 3, 200);
    expect(recording.rows()[0]).toMatchObject({ operation: "2 commands", result: "ok", billed: 2 });
  });

  test("lists a bounded number of requests", () => {
    const { recording, arrived, ended } = started();
    for (let request = 0; request < 1_000; request++) {
      arrived(request, request);
      ended(request, request, 200);
    }
    expect(recording.rows()).toHaveLength(200);
  });
});
