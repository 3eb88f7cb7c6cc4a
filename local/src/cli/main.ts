#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import process from "node:process";
import { runCommand } from "./run.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
// `redis-rest-local --log | head -1` closes the pipe: nobody reads any more.
process.stdout.on("error", ({ code, message }: NodeJS.ErrnoException) => {
  if (code === "EPIPE") process.exit(0);
  console.error(`redis-rest-local: standard output: ${message}`);
  process.exit(1);
});

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (line) => console.log(line),
  warn: (line) => console.error(line),
  stop: stop.signal,
  // Beside this file in the package: it is read only when a browser asks for it.
  pageScript: () => readFile(new URL("page.js", import.meta.url), "utf8"),
  async version() {
    const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  },
});
