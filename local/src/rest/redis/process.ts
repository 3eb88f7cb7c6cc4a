import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { delimiter, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { RedisConnection } from "./connection.ts";

/**
 * Shell script that starts the server, prints its process id, and reads a pipe from this process. The first argument
 * is the server's directory, the others are its command line. The pipe ends when this process dies, even by SIGKILL:
 * then the script kills the server and removes its directory.
 */
const guard = `directory=$1
shift
exec 3<&0
"$@" </dev/null >/dev/null 2>&1 3<&- &
server=$!
(
  while read -r line <&3; do :; done
  trap '' TERM
  kill -9 "$server"
  rm -rf "$directory"
) 2>/dev/null >/dev/null &
watcher=$!
exec 3<&-
echo "$server"
wait "$server"
kill "$watcher"`;

/** A `redis-server` that this process started. */
export interface RedisProcess {
  readonly url: string;
  readonly port: number;
  /** Process id of the server itself, not of the shell that guards it. */
  readonly pid: number;
  /** Kills the server with SIGKILL and resolves when it has exited. */
  kill(): Promise<void>;
}

/** The path of `redis-server`; undefined if it is not on PATH, and always on Windows. */
export function findRedisServer(): string | undefined {
  // The guard is a POSIX shell script.
  if (process.platform === "win32") return undefined;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return folders.map((folder) => join(folder, "redis-server")).find((path) => existsSync(path));
}

/**
 * Starts `program` on loopback, with its files in `directory`, and resolves once it answers PING. Every write is in the
 * append-only file before it is acknowledged, so a killed server has all acknowledged writes when it is started in
 * the same directory again. Without a `port` it uses a free one. Rejects with the end of the server's log.
 */
export async function startRedis(program: string, directory: string, port?: number): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await launch(program, directory, port ?? (await freePort()));
    } catch (error) {
      // Another process may have opened the free port in the meantime.
      const inUse = (error as Error).message.includes("Address already in use");
      if (!inUse || port !== undefined || attempt === 5) throw error;
    }
  }
}

async function launch(program: string, directory: string, port: number): Promise<RedisProcess> {
  const logFile = join(directory, "redis.log");
  await rm(logFile, { force: true });
  const settings = {
    port: String(port),
    bind: "127.0.0.1",
    dir: directory,
    logfile: logFile,
    save: "",
    appendonly: "yes",
    // The file is written before each reply, which survives a kill. An fsync would only help at a power failure.
    appendfsync: "no",
    "auto-aof-rewrite-percentage": "0",
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn("/bin/sh", ["-c", guard, "sh", directory, program, ...flags], {
    // A process group of its own: Ctrl-C in the terminal must reach only this process, which stops the servers.
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const pid = await printedId(child);
  const redis: RedisProcess = {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid,
    async kill() {
      child.ref();
      killHard(pid);
      await exited;
    },
  };
  try {
    await waitForPing(redis.url, child);
  } catch (error) {
    await redis.kill();
    const log = await readFile(logFile, "utf8").catch(() => "");
    throw new Error(`${(error as Error).message}:\n${log.trim().split("\n").slice(-5).join("\n")}`);
  }
  // A test that forgets to stop it must end: then the guard stops it.
  child.unref();
  for (const pipe of [child.stdin, child.stdout]) (pipe as Socket).unref();
  return redis;
}

/** The process id that the guard prints. */
async function printedId(child: ChildProcess): Promise<number> {
  for await (const line of createInterface({ input: child.stdout! })) return Number(line);
  throw new Error("redis-server could not be started: /bin/sh printed no process id");
}

async function waitForPing(url: string, child: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 1000; attempt++) {
    if (child.exitCode !== null) throw new Error("redis-server ended as soon as it was started");
    if (await answersPing(url).catch(() => false)) return;
    await sleep(10);
  }
  throw new Error("redis-server did not answer PING for 10 s");
}

async function answersPing(url: string): Promise<boolean> {
  const connection = await RedisConnection.open(url);
  const [reply] = await connection.send([["PING"]]).finally(() => connection.close());
  // While the server loads its file, the reply is an error.
  return reply === "PONG";
}

/** Sends SIGKILL. Does nothing if the process has already exited. */
function killHard(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await once(server.close(), "close");
  return port;
}
