import { describe, expect, it } from "vitest";
import { Engine, ReplyError } from "../../src/engine/engine.ts";

const engine = new Engine({ now: () => 1000 });

function evaluate(script: string, keys: string[] = [], values: (string | number)[] = []): unknown {
  return engine.execute(["EVAL", script, keys.length, ...keys, ...values]);
}

function errorOf(script: string, keys: string[] = []): string {
  try {
    evaluate(script, keys);
  } catch (error) {
    expect(error).toBeInstanceOf(ReplyError);
    return (error as Error).message;
  }
  throw new Error("expected an error reply");
}

it("has the functions of redis in a coroutine as well", () => {
  const called = "return redis.sha1hex('a'), redis.status_reply('fine').ok";
  expect(evaluate(`local f = coroutine.wrap(function() ${called} end) return {f()}`)).toEqual([
    "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8",
    "fine",
  ]);
});

describe("Lua: numbers are doubles, as in Lua 5.1", () => {
  it.each([
    ["2147483647 + 1", "2147483648"],
    ["4294967296 * 2", "8589934592"],
    ["tonumber('1763714567890') + 1", "1763714567891"],
    ["tonumber('9007199254740991') - 1", "9007199254740990"],
    ["'2147483647' + '1'", "2147483648"],
    ["math.floor(3000000.5) * math.floor(3000000.5)", "9000000000000"],
    ["#'abc' * 4294967296", "12884901888"],
    ["0xFFFFFFFF", "4294967295"],
    ["-2147483648 - 1", "-2147483649"],
    ["math.max(1763714567890, 1)", "1763714567890"],
    ["math.max(1, 0/0)", "1"],
    ["math.min(1, 0/0)", "1"],
    ["-4 % 2", "0"],
    ["-7 % 3", "2"],
    ["0.5", "0"],
    ["1.5", "2"],
  ])("%s is %s", (expression, printed) => {
    expect(evaluate(`return string.format("%.0f", ${expression})`)).toBe(printed);
  });

  it.each([
    ["10 / 2", "5"],
    ["1e15", "1e+15"],
    ["2^53", "9.007199254741e+15"],
    ["1 / 3", "0.33333333333333"],
    ["100", "100"],
    ["#'abc'", "3"],
    ["1000000000000.25", "1000000000000.2"],
  ])("tostring(%s) is %s", (expression, printed) => {
    expect(evaluate(`return tostring(${expression})`)).toBe(printed);
    expect(evaluate(`return '' .. (${expression})`)).toBe(printed);
    expect(evaluate(`local x = ${expression} return table.concat({x})`)).toBe(printed);
  });

  it("counts loops beyond 32 bits", () => {
    const script = "local n = 0 for i = 2147483646, 2147483650 do n = n + 1 end return n";
    expect(evaluate(script)).toBe(5);
  });

  it("passes numbers to commands with 17 digits", () => {
    evaluate("redis.call('SET', 'n', 9007199254740991) redis.call('SET', 'f', 0.1)");
    expect(engine.execute(["MGET", "n", "f"])).toEqual(["9007199254740991", "0.10000000000000001"]);
  });

  it("refuses operators of newer versions of Lua", () => {
    expect(errorOf("return 1 & 2")).toMatch(
      /^ERR Error compiling script \(new function\): user_script:1: .*'&'/,
    );
    expect(errorOf("local x = 1\nreturn 7 // 2")).toMatch(/user_script:2: /);
    expect(errorOf("return table.unpack({1})")).toMatch(/field 'unpack' \(a nil value\)/);
    expect(evaluate("return '// & | << ~ ::' -- 7 // 2")).toBe("// & | << ~ ::");
    expect(evaluate("--[[ 7 // 2 ]] return 1 ~= 2")).toBe(1);
  });
});

describe("Lua: conversion of arguments, replies and results", () => {
  it("has KEYS and ARGV as strings, new ones for each call", () => {
    expect(evaluate("KEYS[1] = 'changed' return {KEYS[1], ARGV[1], #ARGV}", ["k"], [1, "é"])).toEqual([
      "changed",
      "1",
      2,
    ]);
    expect(evaluate("return {KEYS[1], #KEYS, #ARGV}", ["k2"])).toEqual(["k2", 1, 0]);
  });

  it("converts results as Redis does", () => {
    expect(evaluate("return {3.99, -3.99, true, false, 'x', {1, {2}}, 7}")).toEqual([
      3,
      -3,
      1,
      null,
      "x",
      [1, [2]],
      7,
    ]);
    expect(evaluate("return {1, 2, nil, 4}")).toEqual([1, 2]);
    expect(evaluate("return {ok = 'fine'}")).toBe("fine");
    expect(evaluate("return redis.status_reply('fine')")).toBe("fine");
    expect(evaluate("return nil")).toBeNull();
    expect(evaluate("local t = {} return t")).toEqual([]);
    expect(errorOf("return {err = 'MY own'}")).toBe("MY own");
    expect(errorOf("return redis.error_reply('plain')")).toBe("ERR plain");
    expect(errorOf("local t = {} t[1] = t return t")).toBe("ERR reached lua stack limit");
  });

  it("converts replies as Redis does", () => {
    const script = `redis.call('DEL', 'none')
      return {type(redis.call('GET', 'none')), redis.call('SET', 'k', 'v').ok, type(redis.call('INCR', 'i')),
              redis.call('MGET', 'k', 'none')[2] == false, redis.pcall('INCR', 'k').err}`;
    expect(evaluate(script)).toEqual([
      "boolean",
      "OK",
      "number",
      1,
      "ERR value is not an integer or out of range",
    ]);
  });

  it("has sha1hex, log and cjson", () => {
    expect(evaluate("return redis.sha1hex('a')")).toBe("86f7e437faa5a7fce15d1ddcb9eaeaea377667b8");
    expect(evaluate("redis.log(redis.LOG_WARNING, 'quiet') return 1")).toBe(1);
    expect(evaluate("return cjson.encode({1, 'é\"/', {a = cjson.null}, 0.5})")).toBe(
      '[1,"é\\"\\/",{"a":null},0.5]',
    );
    expect(
      evaluate(
        "local v = cjson.decode(ARGV[1]) return {v.a[2], v.b.c, tostring(v.d == cjson.null)}",
        [],
        ['{"a":[1,"é"],"b":{"c":"%d"},"d":null}'],
      ),
    ).toEqual(["é", "%d", "true"]);
    expect(errorOf("return cjson.decode('{')")).toMatch(/^ERR user_script:1: /);
    expect(errorOf("return cjson.encode({print})")).toMatch(/nonexistent global variable 'print'/);
    const nested = `${"[".repeat(200)}${"]".repeat(200)}`;
    expect(evaluate("return cjson.encode(cjson.decode(ARGV[1]))", [], [nested])).toBe(
      `${"[".repeat(199)}{}${"]".repeat(199)}`,
    );
  });

  it("distinguishes all strings as keys of a table", () => {
    expect(evaluate("local t = {['\\1#'] = 1, ['\\18\\3'] = 2} return {t['\\1#'], t['\\18\\3']}")).toEqual([
      1, 2,
    ]);
  });

  it("draws the same random numbers after every start", () => {
    const draw = () => new Engine().execute(["EVAL", "return {math.random(1000), math.random(1000)}", 0]);
    expect(draw()).toEqual(draw());
    expect(evaluate("math.randomseed(0) return math.random(1000)")).toBe(171);
  });
});

describe("Lua: errors", () => {
  it("name the script and the line", () => {
    expect(errorOf("local x = 1\nreturn redis.call('NOPE')")).toMatch(
      /^ERR Unknown Redis command called from script script: [0-9a-f]{40}, on @user_script:2\.$/,
    );
    expect(errorOf("local x\nreturn x.y")).toMatch(
      /^ERR user_script:2: attempt to index local 'x' \(a nil value\) script: [0-9a-f]{40}, on @user_script:2\.$/,
    );
    expect(errorOf("error('boom')")).toMatch(/^ERR user_script:1: boom script: /);
    expect(errorOf("error({err = 'CODE text'})")).toMatch(/^CODE text script: /);
    expect(errorOf("return #")).toMatch(/^ERR Error compiling script \(new function\): user_script:1: /);
  });

  it("can be caught", () => {
    expect(evaluate("local ok, e = pcall(redis.call, 'NOPE') return {tostring(ok), e}")).toEqual([
      "false",
      "ERR Unknown Redis command called from script",
    ]);
    expect(evaluate("local ok, e = pcall(error, 'x', 0) return e")).toBe("x");
  });

  it("leave the machine usable", () => {
    for (let round = 0; round < 500; round++) errorOf("local t = {} error(t.x.y)");
    expect(evaluate("return 1")).toBe(1);
  });
});

describe("Lua: the sandbox", () => {
  it.each([
    "os",
    "io",
    "require",
    "dofile",
    "loadfile",
    "load",
    "print",
    "debug",
    "package",
    "utf8",
    "js",
    "fengari",
  ])("has no %s", (name) => {
    expect(errorOf(`return ${name}`)).toContain(
      `Script attempted to access nonexistent global variable '${name}'`,
    );
  });

  it("does not allow creating or changing globals", () => {
    for (const script of [
      "x = 1",
      "redis = nil",
      "string.sub = nil",
      "redis.call = nil",
      "rawset(_G, 'x', 1)",
      "KEYS = {}",
    ]) {
      expect(errorOf(script), script).toContain("Attempt to modify a readonly table");
    }
    for (const script of [
      "setmetatable(_G, {})",
      "getmetatable(_G).__index = nil",
      "getmetatable('').__index = {}",
    ]) {
      expect(errorOf(script), script).toContain("Attempt to modify a readonly table");
    }
    expect(evaluate("local ok = pcall(function() x = 1 end) return tostring(ok)")).toBe("false");
    expect(errorOf("return x")).toContain("nonexistent global variable 'x'");
  });

  it("runs no bytecode", () => {
    expect(evaluate("return type(loadstring('return 1'))")).toBe("function");
    expect(evaluate("local f, e = loadstring('\\27Lua') return e")).toMatch(/attempt to load a binary chunk/);
    expect(errorOf("\x1bLua")).toMatch(/attempt to load a binary chunk/);
  });
});

describe("Lua: the shebang line", () => {
  it("does not change the numbers of the other lines", () => {
    expect(errorOf("#!lua flags=allow-key-locking\nerror('x')")).toContain("user_script:2: x");
  });

  it("with allow-key-locking restricts a script to its KEYS", () => {
    const locking = "#!lua name=release flags=allow-key-locking\n";
    expect(evaluate(`${locking}return redis.call('SET', KEYS[1], 'v')`, ["own"])).toBe("OK");
    expect(evaluate(`${locking}return redis.call('GET', 'o' .. 'wn')`, ["own"])).toBe("v");
    const refused = (key: string) =>
      `ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set. Key was: ${key}`;
    for (const command of [
      "'SET', 'other', 'v'",
      "'MGET', KEYS[1], 'other'",
      "'MSET', KEYS[1], 'v', 'other', 'v'",
    ]) {
      expect(errorOf(`${locking}return redis.call(${command})`, ["own"])).toBe(refused("other"));
      expect(evaluate(`${locking}return redis.pcall(${command}).err`, ["own"])).toBe(refused("other"));
    }
    for (const command of ["FLUSHALL", "FLUSHDB"]) {
      expect(errorOf(`${locking}return redis.call('${command}')`, ["own"])).toBe(
        `ERR ${command} is not allowed in Lua scripts when 'allow-key-locking' flag is set`,
      );
    }
    // Only commands that write to the whole database are refused.
    expect(evaluate(`${locking}return redis.call('DBSIZE')`, ["own"])).toBeGreaterThan(0);
  });

  it("with no-writes makes a script read-only, as EVAL_RO does", () => {
    const refused = /^ERR Write commands are not allowed from read-only scripts\./;
    expect(errorOf("#!lua flags=no-writes\nreturn redis.call('SET', 'k', 'v')")).toMatch(refused);
    expect(
      evaluate("#!lua flags=no-writes,allow-key-locking\nreturn redis.call('EXISTS', KEYS[1])", ["none"]),
    ).toBe(0);
    expect(() => engine.execute(["EVAL_RO", "return redis.call('DEL', KEYS[1])", 1, "k"])).toThrow(refused);
    const sha = String(engine.execute(["SCRIPT", "LOAD", "return redis.call('DEL', KEYS[1])"]));
    expect(() => engine.execute(["EVALSHA_RO", sha, 1, "k"])).toThrow(refused);
    expect(engine.execute(["EVALSHA", sha, 1, "none"])).toBe(0);
  });

  it("is refused with an unknown engine or flag, and without a line end", () => {
    expect(errorOf("#!lua flags=nope\nreturn 1")).toBe("ERR Unexpected flag in script shebang: nope");
    expect(errorOf("#!python\nreturn 1")).toBe("ERR Unexpected engine in script shebang: #!python");
    expect(errorOf("#!lua")).toBe("ERR Invalid script shebang");
  });
});

describe("Lua: the time limit", () => {
  const limited = new Engine({ luaTimeLimit: 30 });
  const killed = (script: string) => {
    const sha = String(limited.execute(["SCRIPT", "LOAD", script]));
    return `ERR Script killed after lua-time-limit (30 ms). script: ${sha}, on @user_script:`;
  };

  it.each([
    "while true do end",
    "while true do redis.call('INCR', 'n') end",
    "repeat local x = pcall(function() while true do end end) until false",
    "while true do pcall(redis.call, 'INCR', 'n') end",
    "while true do xpcall(function() while true do end end, function() while true do end end) end",
    "local f = coroutine.wrap(function() while true do end end) while true do pcall(f) end",
    "local c = coroutine.create(function() while true do pcall(function() while true do end end) end end)\n" +
      "while true do coroutine.resume(c) end",
    "local function f() return f() end f()",
    "local t = setmetatable({}, {__index = function(t, key) return t[key + 1] end}) while true do pcall(function() return t[1] end) end",
    "string.gsub(string.rep('x', 1000), 'x', function() while true do end end)",
    "table.sort({3, 2, 1}, function() while true do end end)",
  ])("ends %s, and the next script runs", (script) => {
    expect(() => limited.execute(["EVAL", script, 0])).toThrow(killed(script));
    expect(limited.execute(["EVAL", "return 1", 0])).toBe(1);
  });

  it("keeps what the script has written", () => {
    expect(() => limited.execute(["EVAL", "redis.call('SET', 'kept', 1) while true do end", 0])).toThrow(
      /killed/,
    );
    expect(limited.execute(["GET", "kept"])).toBe("1");
  });

  it.each([0, -1, Number.NaN, 2 ** 31])("cannot be %d", (luaTimeLimit) => {
    expect(() => new Engine({ luaTimeLimit })).toThrow(/^luaTimeLimit must be/);
  });
});
