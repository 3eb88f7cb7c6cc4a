#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import process from "node:process";
import { askAt } from "./environment.ts";
import { runCommand } from "./run.ts";

// `redlock-edge list | head -1` closes the pipe: nobody reads any more.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== "EPIPE") console.error(`redlock-edge: standard output: ${message}`);
  process.exit(code === "EPIPE" ? 0 : 1);
});

const manifest = new URL("../../package.json", import.meta.url);

// Standard output has the result only.
const hasTerminal = process.stdin.isTTY && process.stderr.isTTY;

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (line) => console.log(line),
  warn: (line) => console.error(line),
  // Lines of a file or a pipe are not wrapped: grep finds a row whole.
  width: process.stdout.columns || Infinity,
  env: process.env,
  folder: process.cwd(),
  ask: hasTerminal ? (question) => askAt(process, question) : undefined,
  version: async () => (JSON.parse(await readFile(manifest, "utf8")) as { version: string }).version,
});
