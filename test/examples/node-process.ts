import { spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";
import { until } from "../support/until.ts";

/** A Node process of its own: a replica, an instance, a server. */
export interface NodeProcess {
  /** Its standard output and standard error so far. */
  readonly output: () => string;
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Waits until it has printed a line that matches. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  kill(signal: NodeJS.Signals): void;
}

/** Starts an example's server on any free port, and resolves with its URL once it has printed its port. */
export async function startServer(
  program: string,
  env: Readonly<Record<string, string>>,
): Promise<{ server: NodeProcess; url: string }> {
  const server = startNode([program], { ...env, PORT: "0" });
  const [, port] = await server.printed(/"port":(\d+)/);
  return { server, url: `http://localhost:${port}` };
}

/** Waits until a server accepts no more requests. */
export async function untilClosed(url: string): Promise<void> {
  const isClosed = () =>
    fetch(url).then(
      () => false,
      () => true,
    );
  await until(isClosed, "the server to accept no more requests");
}

/** Starts Node with these arguments; it is killed when the test ends. `node`: another one than this. */
export function startNode(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  { node = process.execPath, cwd = process.cwd() }: { readonly node?: string; readonly cwd?: string } = {},
): NodeProcess {
  const child = spawn(node, args, { cwd, env: { ...process.env, ...env } });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ended = once(child, "close").then(([code, signal]) => (signal ?? code) as number | NodeJS.Signals);
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return {
    output: () => output,
    ended,
    printed: (pattern) => until(() => output.match(pattern), String(pattern)),
    kill: (signal) => void child.kill(signal),
  };
}
