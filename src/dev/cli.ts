#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import process from "node:process";
import { runCommand } from "./cli/run-command.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (line) => console.log(line),
  warn: (line) => console.error(line),
  stop: stop.signal,
  async version() {
    const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  },
});
