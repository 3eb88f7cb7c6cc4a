#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import process from "node:process";
import { askAt } from "./environment.ts";
import { runCommand } from "./run.ts";

// `redlock-edge list | head -1` closes the pipe: nobody reads any more.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(0);
  console.error(`redlock-edge: standard output: ${message}`);
  process.exit(1);
});

// Standard output has the result only.
const terminal = { input: process.stdin, output: process.stderr };
const hasTerminal = process.stdin.isTTY && process.stderr.isTTY;

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (line) => console.log(line),
  warn: (line) => console.error(line),
  // Lines of a file or a pipe are not wrapped: grep finds a row whole.
  width: process.stdout.columns || Infinity,
  env: process.env,
  folder: process.cwd(),
  ask: hasTerminal ? (question) => askAt(terminal, question) : undefined,
  async version() {
    const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  },
});
