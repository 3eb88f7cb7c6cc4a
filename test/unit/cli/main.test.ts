import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseLine } from "../../../src/cli/options.ts";
import { openSocket } from "../../../src/cli/sockets.ts";

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "redlock-edge-cli-"));
  await build({
    entryPoints: ["src/cli/main.ts"],
    outfile: join(folder, "cli.mjs"),
    bundle: true,
    platform: "node",
    format: "esm",
  });
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs a command line in a folder, in which `redlock` is the command. */
async function shell(line: string, cwd: string = folder, env: Record<string, string> = {}) {
  const command = `cli="$1"; redlock() { "$0" "$cli" "$@"; }; ${line}`;
  const child = spawn("/bin/sh", ["-c", command, process.execPath, join(folder, "cli.mjs")], { cwd, env });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (text += piece));
  const [code] = await once(child, "close");
  return { code, text };
}

test("says which package to install if the project has no Redis client", async () => {
  const { code, text } = await shell("redlock doctor", folder, { REDIS_URL: "redis://:hidden@localhost:1" });
  expect(code).toBe(2);
  expect(text).toMatch(/needs a Redis client in .*: npm install ioredis, or npm install redis/);
  expect(text).not.toContain("hidden");
});

test("does not print an address that is no URL of Redis, because it may have a password", async () => {
  const client = () => expect.unreachable("a client");
  const { open } = await openSocket(client, "http://:hidden@localhost", parseLine([], []).values);
  expect(open).toThrow(/^the URL must be redis:/);
});

test.each(["ioredis", "redis"])("ends although a client of %s tries to connect", async (name) => {
  const project = join(folder, name);
  await mkdir(join(project, "node_modules"), { recursive: true });
  await symlink(resolve("node_modules", name), join(project, "node_modules", name), "dir");
  const { code, text } = await shell("redlock inspect a", project, { REDIS_URL: "redis://localhost:1" });
  expect([code, text]).toEqual([1, expect.stringMatching(/localhost:1 +error .*ECONNREFUSED/)]);
});

test.runIf(existsSync("/dev/full"))("exits with 1 where its output cannot be written", async () => {
  const { code, text } = await shell("redlock --help >/dev/full");
  expect([code, text]).toEqual([1, expect.stringMatching(/^redlock-edge: standard output: ENOSPC/)]);
});

test("a reader that ends first is no failure", async () => {
  expect(await shell("{ redlock --help; echo code $? >&2; } | true")).toMatchObject({ text: "code 0\n" });
});
