import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { basename } from "node:path";
import process from "node:process";
import { until } from "./until.ts";

/** Starts a server that does not outlive the tests, and waits until it answers what `ask` asks. */
export async function startDatabase(
  program: string,
  args: readonly string[],
  options: SpawnOptions,
  ask: () => Promise<unknown>,
): Promise<{ readonly server: ChildProcess; readonly exited: Promise<unknown> }> {
  const server = spawn(program, args, { ...options, stdio: "ignore" });
  const end = () => server.kill("SIGKILL");
  process.on("exit", end);
  const exited = once(server, "exit").then(() => process.off("exit", end));
  await until(async () => {
    const [answer] = await Promise.allSettled([ask()]);
    if (answer.status === "fulfilled") return true;
    if (server.exitCode !== null) throw new Error(`${basename(program)} has ended with ${server.exitCode}`);
    return false;
  }, basename(program));
  return { server, exited };
}
