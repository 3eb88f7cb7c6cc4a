import { describe, expect, test } from "vitest";
import { claimScript } from "../../../src/redis/claim-script.ts";
import { memoryEndpoint } from "../../../src/testing/index.ts";

// What the script does where a command is missing: nothing else shows it, because all servers of the tests have them.

/** Redis before 7.0 has NX and GET, but not together. */
const before7 = `local newer = redis
local redis = {
  call = newer.call,
  pcall = function(...)
    local words = table.concat({...}, " ")
    if string.find(words, "GET NX", 1, true) then return {err = "ERR syntax error"} end
    return newer.pcall(...)
  end,
}
`;
const keys = ["record", "lock", "counter"];

function operate(prelude: string, native: 0 | 1) {
  const { engine } = memoryEndpoint({ name: "e", dialect: "redis" });
  const run = (operation: string, next = "", token = "t1", pending = `P ${token}`) =>
    engine.execute([
      "EVAL",
      prelude + claimScript.source,
      3,
      ...keys,
      operation,
      pending,
      token,
      1,
      operation === "end" ? 60_000 : 1_000,
      next,
      5_000,
      10_000,
      native,
    ]) as unknown[];
  const values = () => engine.execute(["MGET", ...keys]);
  return { engine, run, values };
}

describe.each([
  ["Redis 7", "", 0],
  ["Redis before 7.0", before7, 0],
  ["an endpoint without compare-and-set", "", 1],
] as const)("the script of a claim on %s", (_, prelude, native) => {
  test("begins, refuses another run, and ends", () => {
    const { run, values } = operate(prelude, native);
    const begun = run("begin");
    expect([begun[0], begun[2]]).toEqual(["t1", "5000"]);
    expect(values()).toEqual(["P t1", "t1", "5000"]);
    expect(run("begin").slice(2)).toEqual(["5001"]);
    expect(run("begin", "", "t2").slice(2)).toEqual(["r", "P t1"]);
    expect(run("end", "C", "t2")[0]).toBe(0);
    expect(run("end", "C")[0]).toBe("t1");
    expect(values()).toEqual(["C", null, "5001"]);
    expect(run("end", "C")[0]).toBe(0);
  });

  test("leaves nothing where the lock is held, and deletes only its own", () => {
    const { engine, run, values } = operate(prelude, native);
    engine.execute(["SET", "lock", "other", "PX", 700]);
    expect(run("begin").slice(2)).toEqual(["l", expect.any(Number)]);
    expect(run("end")[0]).toBe(0);
    expect(values()).toEqual([null, "other", null]);
    engine.execute(["DEL", "lock"]);
    run("begin");
    expect(run("end")[0]).toBe("t1");
    expect(values()).toEqual([null, null, "5000"]);
  });
});
