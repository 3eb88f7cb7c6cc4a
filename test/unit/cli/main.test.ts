import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

test.runIf(existsSync("/dev/full"))("exits with 1 where its output cannot be written", async () => {
  expect(await run(">/dev/full")).toMatch(/^redlock-edge: standard output: ENOSPC.*\ncode 1\n$/);
});

test("a reader that ends first is no failure", async () => {
  expect(await run("| true")).toBe("code 0\n");
});
