import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { type FaultPlan, Faults } from "../../../src/faults/faults.ts";
import { commandName, withFaults } from "../../../src/rest/http/inject-faults.ts";

/** Without a rule. */
const none = new Faults().plan("GET");

/** A handler that records the bodies that it executes, with one of `plans` for each request. */
function setUp(...plans: Partial<FaultPlan>[]) {
  const executed: string[] = [];
  const planned: string[] = [];
  let waiting: (() => void)[] = [];
  const answer = withFaults(
    async (request) => {
      executed.push(await request.text());
      for (const resolve of waiting.splice(0)) resolve();
      return Response.json({ result: executed.length });
    },
    Object.assign(new Faults(), {
      plan(command: string) {
        planned.push(command);
        return { ...none, ...plans.shift() };
      },
    }),
  );
  const closing = new AbortController();
  const send = (body: string) =>
    answer(new Request("http://localhost/", { method: "POST", body }), closing.signal);
  const nextExecution = () =>
    new Promise<void>((resolve) => {
      waiting = [...waiting, resolve];
    });
  return { executed, planned, send, closing, nextExecution };
}

describe("withFaults", () => {
  test("changes nothing without a fault", async () => {
    const { executed, planned, send } = setUp();
    const response = (await send('["get","a"]')) as Response;
    expect(await response.json()).toEqual({ result: 1 });
    expect([executed, planned]).toEqual([['["get","a"]'], ["GET"]]);
  });

  test.each([
    [{ down: true }, "reset", 0],
    [{ dropRequest: true }, "silence", 0],
    [{ dropRequest: true, reset: true }, "reset", 0],
    [{ dropReply: true }, "silence", 1],
    [{ dropReply: true, reset: true }, "reset", 1],
    [{ dropReply: true, duplicate: true }, "silence", 2],
  ] as const)("%j answers with %s after %i executions", async (plan, answer, runs) => {
    const { executed, send } = setUp(plan);
    expect(await send("[]")).toBe(answer);
    expect(executed).toHaveLength(runs);
  });

  test("duplicate: the second reply is sent", async () => {
    const { executed, send } = setUp({ duplicate: true });
    expect(await ((await send('["INCR","a"]')) as Response).json()).toEqual({ result: 2 });
    expect(executed).toEqual(['["INCR","a"]', '["INCR","a"]']);
  });

  test("status: not executed, an error as JSON or as HTML", async () => {
    const { executed, send } = setUp({ status: 429 }, { status: 502, html: true });
    const json = (await send("[]")) as Response;
    expect([json.status, await json.json()]).toEqual([429, { error: expect.stringMatching(/^ERR /) }]);
    const page = (await send("[]")) as Response;
    expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html; charset=utf-8"]);
    expect(await page.text()).toMatch(/^<!DOCTYPE html>/);
    expect(executed).toEqual([]);
  });

  test("delay: others are executed in the meantime", async () => {
    const { executed, send } = setUp({ delay: 100 });
    await Promise.all([send("delayed"), send("prompt")]);
    expect(executed).toEqual(["prompt", "delayed"]);
  });

  test("delay-reply: executed at once", async () => {
    const { executed, send, nextExecution } = setUp({ delayReply: 60_000 });
    const execution = nextExecution();
    const late = send("late");
    await execution;
    expect(executed).toEqual(["late"]);
    expect(await Promise.race([late, send("other").then(() => "other came first")])).toBe("other came first");
  });

  test("reorder: executed after the next request", async () => {
    const { executed, send } = setUp({ reorder: true }, {}, { delay: 500 });
    await Promise.all([send("first"), send("second"), send("third")]);
    expect(executed).toEqual(["second", "first", "third"]);
  });

  test("reorder: executed in the end without a next request", async () => {
    const { executed, send } = setUp({ reorder: true });
    expect(await ((await send("only")) as Response).json()).toEqual({ result: 1 });
    expect(executed).toEqual(["only"]);
  });

  test.each([{ delay: 60_000 }, { reorder: true }])(
    "%j: never executed after a crash in the meantime",
    async (plan) => {
      const { executed, planned, send, closing } = setUp(plan);
      const pending = send('["SET","a","b"]');
      await expect.poll(() => planned).toEqual(["SET"]);
      closing.abort();
      expect(await pending).toBe("reset");
      expect(executed).toEqual([]);
    },
  );
});

test.each([
  ["/", '["set","a"]', "SET"],
  ["/", "{oops", ""],
  ["/", "", ""],
  ["/set/a/b", "body", "SET"],
  ["/pipeline", '[["get","a"],["set","a"]]', "GET"],
  ["/multi-exec", '[["Del","a"]]', "DEL"],
])("commandName of %s %s is %j", (path, body, name) => {
  expect(commandName(path, Buffer.from(body))).toBe(name);
});
