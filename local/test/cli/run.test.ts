import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../../../test/support/free-port.ts";
import { runCommand } from "../../src/cli/run.ts";

describe("redis-rest-local", () => {
  let directory: string;
  let lines: string[];
  let warnings: string[];

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "redis-rest-local-test-"));
    lines = [];
    warnings = [];
  });
  afterEach(() => rm(directory, { recursive: true }));

  const run = (line: string, stop: AbortSignal) =>
    runCommand(line.split(" ").filter(Boolean), {
      out: (text) => lines.push(text),
      warn: (text) => warnings.push(text),
      stop,
      version: async () => "1.2.3",
      pageScript: async () => "page();",
    });

  const runToEnd = (line: string) => run(line, AbortSignal.abort());

  /** Runs with the embedded engine until `during` has resolved, once it has printed all that it prints at the start. */
  async function runWhile(line: string, during: (env: Record<string, string>) => Promise<void>) {
    const stop = new AbortController();
    const started = new Promise<void>((resolve) => {
      // It listens when it has nothing left to do but to wait.
      const listen = stop.signal.addEventListener.bind(stop.signal);
      stop.signal.addEventListener = (...args: Parameters<typeof listen>) => {
        listen(...args);
        resolve();
      };
    });
    const ended = run(`--engine embedded ${line}`, stop.signal);
    await Promise.race([started, ended.then((code) => expect.fail(`ended with ${code}: ${warnings}`))]);
    const exported = lines.flatMap((each) => [...each.matchAll(/^export (\w+)="([^"]*)"$/g)]);
    await during(Object.fromEntries(exported.map(([, name, value]) => [name, value]))).finally(() =>
      stop.abort(),
    );
    return ended;
  }

  const get = (env: Record<string, string>, index: number, path: string) =>
    fetch(env[`UPSTASH_REDIS_REST_URL_${index}`] + path, {
      headers: { authorization: `Bearer ${env[`UPSTASH_REDIS_REST_TOKEN_${index}`]}` },
    });

  test("prints help and version with exit code 0", async () => {
    expect([await runToEnd("--help"), await runToEnd("-v")]).toEqual([0, 0]);
    expect(lines[0]).toMatch(
      /^Usage: redis-rest-local(?:.|\n)*\n {2}--count <n> {10}how many endpoints \(3\)\n/,
    );
    expect([lines[1], ...warnings]).toEqual(["1.2.3"]);
  });

  test.each([
    ["--coutn 3", "Unknown option '--coutn'; did you mean --count?"],
    ["--bogus", "Unknown option '--bogus'; there are --count, "],
    ["extra", "Unexpected argument 'extra'"],
    ["--count", "'--count"],
    ["--count 0", "count"],
    ["--port three", "'three'"],
    ["--page-port 65536", "up to 65535, not '65536'"],
    ["--log=yes", "--log"],
    ["--engine mysql", "mysql"],
    ["--redis http://x", "redis://"],
    ["--engine embedded --down 9", "--down: there is no endpoint 9"],
  ])("exits with 2 and a hint after '%s'", async (line, message) => {
    expect(await runToEnd(line)).toBe(2);
    expect(warnings).toEqual([expect.stringContaining(message), "Try: redis-rest-local --help"]);
    expect(warnings[0]).toMatch(/^redis-rest-local: .*$/);
  });

  const pageLine = () => lines.find((line) => line.includes("#token="));

  test("starts working endpoints and their page, and closes them when `stop` aborts", async () => {
    let address = "";
    const code = await runWhile("--count 2", async (env) => {
      expect(await (await get(env, 2, "/set/key/value")).json()).toEqual({ result: "OK" });
      expect(lines[0]).toMatch(/^# 2 endpoints in front of the embedded engine, until/);
      // All lines can be pasted into a shell, also into zsh, which knows no comments at its prompt.
      for (const line of lines)
        expect(line).toMatch(/^(?:#[\w .,:/=-]*(?:\/#token=[\w-]+)?|export \w+="[\w.:/-]+")$/);
      expect(lines.join("\n")).toMatch(/Next: .*\n.*--write-env/);
      address = /http:\/\/127\.0\.0\.1:\d+\/#token=(.+)$/.exec(pageLine() ?? "")?.[0] ?? "";
      expect(new URL(address).hash).toBe(`#token=${env.UPSTASH_REDIS_REST_TOKEN_1}`);
      expect(await (await fetch(address)).text()).toContain("redis-rest-local");
      expect(await (await fetch(new URL("/page.js", address))).text()).toBe("page();");
    });
    expect([code, ...warnings]).toEqual([0]);
    await expect(fetch(address)).rejects.toThrow();
  });

  test("breaks the connections of an endpoint that is down, and serves no page with --no-page", async () => {
    await runWhile("--count 2 --down 2 --no-page", async (env) => {
      expect((await get(env, 1, "/ping")).status).toBe(200);
      await expect(get(env, 2, "/ping")).rejects.toThrow();
      expect(pageLine()).toBeUndefined();
    });
  });

  test("prints every command with --log", async () => {
    await runWhile("--count 1 --log", async (env) => {
      await get(env, 1, `/set/key/${"x".repeat(500)}`);
      await get(env, 1, "/incr/key");
      await get(env, 1, `/set/odd/${encodeURIComponent("\u009b31m\u202e\u2028")}`);
      expect(lines[0]).toMatch(/^# 1 endpoint in front of the embedded engine, until/);
    });
    const log = lines.filter((line) => line.startsWith("endpoint-1"));
    expect(log).toEqual([
      expect.stringMatching(/^endpoint-1 billed=1 [\d.]+ms ok set "key" "x+\.\.\."$/),
      expect.stringMatching(/^endpoint-1 billed=1 [\d.]+ms error incr "key" -> ERR value is not an integer/),
      // What could control a terminal is escaped.
      expect.stringMatching(/ set "odd" "\\u\{9b\}31m\\u\{202e\}\\u\{2028\}"$/),
    ]);
  });

  test("a program that has read the file reaches the endpoints after a restart at the same port", async () => {
    const file = join(directory, ".dev.vars");
    const line = `--count 1 --port ${await freePort()} --write-env ${file}`;
    let before: Record<string, string> = {};
    await runWhile(line, async (env) => {
      before = env;
    });
    lines = [];
    await runWhile(line, async (env) => {
      expect(env).toEqual(before);
      expect((await get(before, 1, "/ping")).status).toBe(200);
    });
  });

  test.each(["--port", "--page-port"])("says what to do where the port of %s is in use", async (option) => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    expect(await runToEnd(`--engine embedded --count 1 ${option} ${port}`)).toBe(1);
    expect(warnings).toEqual([
      expect.stringMatching(
        new RegExp(`^redis-rest-local: .* in use 127.0.0.1:${port}, .* choose another .*${option}\\b`),
      ),
    ]);
    server.close();
  });

  test("does not print the password of a Redis", async () => {
    expect(await runToEnd("--redis redis://:hidden@127.0.0.1:1")).toBe(0);
    expect(lines.join("\n")).toMatch(/ with redis:\/\/127\.0\.0\.1:1\n/);
  });

  test("says what to do where redis-server is missing", async () => {
    const { PATH } = process.env;
    process.env.PATH = directory;
    expect(await runToEnd("--engine redis").finally(() => Object.assign(process.env, { PATH }))).toBe(1);
    expect(warnings).toEqual([expect.stringMatching(/redis-server is not on PATH: install it/)]);
  });

  test("warns of an address that other machines can reach", async () => {
    await runWhile("--count 1 --host 0.0.0.0", async (env) => {
      expect(env.UPSTASH_REDIS_REST_URL_1).toMatch(/^http:\/\/127\.0\.0\.1:/);
      expect(warnings).toEqual([expect.stringContaining("0.0.0.0 is not loopback")]);
    });
    warnings = [];
    await runWhile("--count 1 --host localhost", async () => undefined);
    expect(warnings).toEqual([]);
  });
});
