#!/usr/bin/env node
import { readFile } from "node:fs/promises";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { runCommand } from "./cli/run-command.ts";

const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stop.abort());
// `redlock-edge watch … | head -1` closes the pipe: nobody reads any more.
process.stdout.on("error", () => process.exit(0));

/** Asks on standard error, so that standard output has the result only. Ctrl-C is a no. */
async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const cancel = new AbortController();
  terminal.once("SIGINT", () => cancel.abort());
  terminal.once("close", () => cancel.abort());
  try {
    return await terminal.question(question, { signal: AbortSignal.any([cancel.signal, stop.signal]) });
  } catch {
    process.stderr.write("\n");
    return "";
  } finally {
    terminal.close();
  }
}

process.exitCode = await runCommand(process.argv.slice(2), {
  out: (line) => console.log(line),
  warn: (line) => console.error(line),
  stop: stop.signal,
  env: process.env,
  ask: process.stdin.isTTY && process.stderr.isTTY ? ask : undefined,
  progress: process.stderr.isTTY
    ? (text) => process.stderr.write(text === undefined ? "\r\u001b[K" : `\r\u001b[K${text}`)
    : undefined,
  async version() {
    const manifest = await readFile(new URL("../../package.json", import.meta.url), "utf8");
    return (JSON.parse(manifest) as { version: string }).version;
  },
});
// Requests that were stopped would keep the process alive until their timeout.
if (stop.signal.aborted) process.exit();
