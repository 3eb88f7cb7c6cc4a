import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { commandName, withFaults } from "../../../../src/dev/http/inject-faults.ts";
import type { FaultPlan } from "../../../../src/testing/faults.ts";

const none: FaultPlan = {
  down: false,
  dropRequest: false,
  dropReply: false,
  reset: false,
  delay: 0,
  delayReply: 0,
  reorder: false,
  duplicate: false,
  status: undefined,
  html: false,
};

/** A handler that notes the bodies it runs, behind faults that are taken from `plans`, one per request. */
function setUp(...plans: Partial<FaultPlan>[]) {
  const ran: string[] = [];
  const planned: string[] = [];
  let waiting: (() => void)[] = [];
  const answer = withFaults(
    async (request) => {
      ran.push(await request.text());
      for (const resolve of waiting.splice(0)) resolve();
      return Response.json({ result: ran.length });
    },
    (command) => {
      planned.push(command);
      return { ...none, ...plans.shift() };
    },
  );
  const closing = new AbortController();
  const send = (body: string) =>
    answer(new Request("http://localhost/", { method: "POST", body }), closing.signal);
  const nextRun = () =>
    new Promise<void>((resolve) => {
      waiting = [...waiting, resolve];
    });
  return { ran, planned, send, closing, nextRun };
}

describe("withFaults", () => {
  test("does nothing without a fault", async () => {
    const { ran, planned, send } = setUp();
    const response = (await send('["get","a"]')) as Response;
    expect(await response.json()).toEqual({ result: 1 });
    expect([ran, planned]).toEqual([['["get","a"]'], ["GET"]]);
  });

  test.each([
    [{ down: true }, "reset", 0],
    [{ dropRequest: true }, "silence", 0],
    [{ dropRequest: true, reset: true }, "reset", 0],
    [{ dropReply: true }, "silence", 1],
    [{ dropReply: true, reset: true }, "reset", 1],
    [{ dropReply: true, duplicate: true }, "silence", 2],
  ] as const)("%j answers with %s after %i runs", async (plan, answer, runs) => {
    const { ran, send } = setUp(plan);
    expect(await send("[]")).toBe(answer);
    expect(ran).toHaveLength(runs);
  });

  test("duplicate: the second reply arrives", async () => {
    const { ran, send } = setUp({ duplicate: true });
    expect(await ((await send('["INCR","a"]')) as Response).json()).toEqual({ result: 2 });
    expect(ran).toEqual(['["INCR","a"]', '["INCR","a"]']);
  });

  test("status: not run, an error as JSON or as a page", async () => {
    const { ran, send } = setUp({ status: 429 }, { status: 502, html: true });
    const json = (await send("[]")) as Response;
    expect([json.status, await json.json()]).toEqual([429, { error: expect.stringMatching(/^ERR /) }]);
    const page = (await send("[]")) as Response;
    expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html; charset=utf-8"]);
    expect(await page.text()).toMatch(/^<!DOCTYPE html>/);
    expect(ran).toEqual([]);
  });

  test("delay: others are run in the meantime", async () => {
    const { ran, send } = setUp({ delay: 100 });
    await Promise.all([send("delayed"), send("prompt")]);
    expect(ran).toEqual(["prompt", "delayed"]);
  });

  test("delay-reply: run at once", async () => {
    const { ran, send, nextRun } = setUp({ delayReply: 60_000 });
    const run = nextRun();
    const late = send("late");
    await run;
    expect(ran).toEqual(["late"]);
    expect(await Promise.race([late, send("other").then(() => "other came first")])).toBe("other came first");
  });

  test("reorder: the next request is run first", async () => {
    const { ran, send } = setUp({ reorder: true }, {}, { delay: 500 });
    await Promise.all([send("first"), send("second"), send("third")]);
    expect(ran).toEqual(["second", "first", "third"]);
  });

  test("reorder: alone, it is run in the end", async () => {
    const { ran, send } = setUp({ reorder: true });
    expect(await ((await send("only")) as Response).json()).toEqual({ result: 1 });
    expect(ran).toEqual(["only"]);
  });

  test.each([{ delay: 60_000 }, { reorder: true }])(
    "%j: a crash in the meantime means never run",
    async (plan) => {
      const { ran, planned, send, closing } = setUp(plan);
      const pending = send('["SET","a","b"]');
      await expect.poll(() => planned).toEqual(["SET"]);
      closing.abort();
      expect(await pending).toBe("reset");
      expect(ran).toEqual([]);
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
