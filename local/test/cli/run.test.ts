import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
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

  const version = async () => "1.2.3";

  /** Runs to the end; `stop` is aborted already. */
  const runToEnd = (line: string) =>
    runCommand(line.split(" ").filter(Boolean), {
      out: (text) => lines.push(text),
      warn: (text) => warnings.push(text),
      stop: AbortSignal.abort(),
      version,
      pageScript: async () => "page();",
    });

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
    const ended = runCommand(["--engine", "embedded", ...line.split(" ").filter(Boolean)], {
      out: (text) => lines.push(text),
      warn: (text) => warnings.push(text),
      stop: stop.signal,
      version,
      pageScript: async () => "page();",
    });
    await Promise.race([started, ended.then((code) => expect.fail(`ended with ${code}: ${warnings}`))]);
    const env = Object.fromEntries(
      lines.flatMap((each) => {
        const [, name, value] = /^export (\w+)="([^"]*)"$/.exec(each) ?? [];
        return name === undefined ? [] : [[name, value!]];
      }),
    );
    await during(env).finally(() => stop.abort());
    return ended;
  }

  const get = (env: Record<string, string>, index: number, path: string) =>
    fetch(env[`UPSTASH_REDIS_REST_URL_${index}`] + path, {
      headers: { authorization: `Bearer ${env[`UPSTASH_REDIS_REST_TOKEN_${index}`]}` },
    });

  test("prints help and version with exit code 0", async () => {
    expect(await runToEnd("--help")).toBe(0);
    expect(lines.join("\n")).toMatch(/^Usage: redis-rest-local/);
    expect(lines[0]).toMatch(/\n {2}--count <n> {10}how many endpoints \(3\)\n/);
    lines = [];
    expect(await runToEnd("--version")).toBe(0);
    expect(lines).toEqual(["1.2.3"]);
    expect(warnings).toEqual([]);
  });

  test.each(["--bogus", "--count 0", "--engine mysql", "--redis http://x", "--engine embedded --down 9"])(
    "exits with 2 and a hint after '%s'",
    async (line) => {
      expect(await runToEnd(line)).toBe(2);
      expect(warnings).toEqual([
        expect.stringMatching(/^redis-rest-local: /),
        "Try: redis-rest-local --help",
      ]);
    },
  );

  test("starts working endpoints, and closes them when `stop` aborts", async () => {
    let url = "";
    const code = await runWhile("--count 2", async (env) => {
      url = env.UPSTASH_REDIS_REST_URL_2!;
      expect(await (await get(env, 2, "/set/key/value")).json()).toEqual({ result: "OK" });
      expect(lines[0]).toMatch(/^# 2 endpoints in front of the embedded engine, until/);
      // All lines can be pasted into a shell, also into zsh, which knows no comments at its prompt.
      for (const line of lines)
        expect(line).toMatch(/^(?:#[\w .,:/=-]*(?:\/#token=[\w-]+)?|export \w+="[\w.:/-]+")$/);
      expect(lines.join("\n")).toMatch(/Next: .*\n.*--write-env/);
    });
    expect(code).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
    expect(warnings).toEqual([]);
  });

  const pageLine = () => lines.find((line) => line.includes("#token="));

  test("serves the page of the endpoints, and says where it is", async () => {
    let address = "";
    await runWhile("--count 2", async (env) => {
      address = /http:\/\/127\.0\.0\.1:\d+\/#token=(.+)$/.exec(pageLine() ?? "")?.[0] ?? "";
      const { hash } = new URL(address);
      expect(hash).toBe(`#token=${env.UPSTASH_REDIS_REST_TOKEN_1}`);
      expect(await (await fetch(address)).text()).toContain("redis-rest-local");
      expect(await (await fetch(new URL("/page.js", address))).text()).toBe("page();");
      const headers = { authorization: `Bearer ${env.UPSTASH_REDIS_REST_TOKEN_1}` };
      const state = await (await fetch(new URL("/api/state", address), { headers })).json();
      expect(state).toMatchObject({ quorum: 2, endpoints: [{ status: "up" }, { status: "up" }] });
    });
    await expect(fetch(address)).rejects.toThrow();
  });

  test("serves no page with --no-page", async () => {
    await runWhile("--no-page", async () => expect(pageLine()).toBeUndefined());
  });

  test("breaks the connections of an endpoint that is down", async () => {
    await runWhile("--count 2 --down 2", async (env) => {
      expect((await get(env, 1, "/ping")).status).toBe(200);
      await expect(get(env, 2, "/ping")).rejects.toThrow();
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

  test("writes the variables into --write-env and keeps other lines", async () => {
    const file = join(directory, ".dev.vars");
    await writeFile(
      file,
      '# a comment\n\nOTHER="kept"\nUPSTASH_REDIS_REST_URL_1="http://127.0.0.1:1"\nexport UPSTASH_REDIS_REST_URL_4=http://127.0.0.1\n',
    );
    await runWhile(`--count 1 --token secret --write-env ${file}`, async (env) => {
      const url = env.UPSTASH_REDIS_REST_URL_1;
      expect((await readFile(file, "utf8")).trimEnd().split("\n")).toEqual([
        "# a comment",
        "",
        'OTHER="kept"',
        `UPSTASH_REDIS_REST_URL="${url}"`,
        'UPSTASH_REDIS_REST_TOKEN="secret"',
        `UPSTASH_REDIS_REST_URL_1="${url}"`,
        'UPSTASH_REDIS_REST_TOKEN_1="secret"',
      ]);
    });
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
