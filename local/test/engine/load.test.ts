import { expect, it } from "vitest";
import { Engine } from "../../src/engine/engine.ts";

// Engines of one process share what a script compiles to.

const run = (engine: Engine, script: string, key: string) => engine.execute(["EVAL", script, "1", key]);

it("runs one script on several engines, each with its own data, closures and globals", () => {
  const script = `
    local calls = 0
    local function next() calls = calls + 1 return calls end
    local function constant() return "same" end
    next()
    return {redis.call("INCR", KEYS[1]), next(), constant(), KEYS[1], ARGV[1] or "none"}`;
  const engines = [1, 2, 3].map(() => new Engine({ now: () => 1_000 }));
  for (const round of [1, 2]) {
    for (const [index, engine] of engines.entries()) {
      const key = `key-${index}`;
      expect(run(engine, script, key)).toEqual([round, 2, "same", key, "none"]);
      expect(engine.execute(["DBSIZE"])).toBe(1);
    }
  }
});

it("names the line of an error on each engine", () => {
  const script = `local x = 1\nreturn redis.call("LPUSH", KEYS[1])`;
  const messages = [1, 2].map(() => {
    try {
      return run(new Engine({ now: () => 1_000 }), script, "k");
    } catch (error) {
      return (error as Error).message;
    }
  });
  expect(messages[0]).toContain("user_script:2");
  expect(messages[1]).toBe(messages[0]);
});

it("refuses a text that does not compile each time", () => {
  for (const _ of [1, 2]) {
    expect(() => run(new Engine({ now: () => 1_000 }), "return (", "k")).toThrow(
      "ERR Error compiling script",
    );
  }
});

it("compiles again what is kept no longer", () => {
  const first = new Engine({ now: () => 1_000 });
  for (let number = 0; number < 450; number++) expect(run(first, `return ${number}`, "k")).toBe(number);
  const second = new Engine({ now: () => 1_000 });
  for (let number = 0; number < 450; number++) expect(run(second, `return ${number}`, "k")).toBe(number);
});
