import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";

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

/** Runs the command in a shell, its output going where `into` says: standard error, and the exit code. */
async function run(into: string): Promise<string> {
  const command = `{ "$0" "$1" --help; echo "code $?" >&2; } ${into}`;
  const child = spawn("/bin/sh", ["-c", command, process.execPath, join(folder, "cli.mjs")]);
  let errors = "";
  child.stderr.on("data", (text) => {
    errors += text;
  });
  await once(child, "close");
  return errors;
}

/** Runs the command with variables in a folder of its own: its output, and the exit code. */
async function runIn(cwd: string, args: readonly string[], env: Record<string, string>) {
  const child = spawn(process.execPath, [join(folder, "cli.mjs"), ...args], { cwd, env });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (piece) => (text += piece));
  const [code] = await once(child, "close");
  return { code, text };
}

test("says which package to install if the project has no Redis client", async () => {
  const { code, text } = await runIn(folder, ["doctor"], { REDIS_URL: "redis://:hidden@localhost:1" });
  expect(code).toBe(2);
  expect(text).toMatch(/needs a Redis client in .*: npm install ioredis, or npm install redis/);
  expect(text).not.toContain("hidden");
});

test.each(["ioredis", "redis"])("ends although a client of %s tries to connect", async (name) => {
  const project = join(folder, name);
  await mkdir(join(project, "node_modules"), { recursive: true });
  await symlink(resolve("node_modules", name), join(project, "node_modules", name), "dir");
  const { code, text } = await runIn(project, ["inspect", "a"], { REDIS_URL: "redis://localhost:1" });
  expect([code, text]).toEqual([1, expect.stringMatching(/localhost:1 +error .*ECONNREFUSED/)]);
});

test.runIf(existsSync("/dev/full"))("exits with 1 where its output cannot be written", async () => {
  expect(await run(">/dev/full")).toMatch(/^redlock-edge: standard output: ENOSPC.*\ncode 1\n$/);
});

test("a reader that ends first is no failure", async () => {
  expect(await run("| true")).toBe("code 0\n");
});
