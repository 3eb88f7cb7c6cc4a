import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:fs";
import { access, readFile, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { delimiter, join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { RedisConnection } from "./connection.ts";
import { StatusReply } from "./resp.ts";

/**
 * Starts the server (the arguments after the first, which is its directory), says its process id, and holds a
 * pipe from this process. When the pipe ends without more ado, this process has died, however that happened:
 * then the server is killed and its directory removed. So nothing survives, not even a SIGKILL.
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

/** A `redis-server` that belongs to this process. */
export interface RedisProcess {
  readonly url: string;
  readonly port: number;
  /** Process id of the server itself, for SIGSTOP and the like. */
  readonly pid: number;
  /** Kills it with SIGKILL and resolves when it is gone. */
  kill(): Promise<void>;
}

/** The path of `redis-server`, or undefined when it is not on PATH. */
export async function findRedisServer(): Promise<string | undefined> {
  // The guard is a POSIX shell script.
  if (process.platform === "win32") return undefined;
  for (const directory of (process.env.PATH ?? "").split(delimiter)) {
    const candidate = join(directory, "redis-server");
    const [found] = await Promise.allSettled([access(candidate, constants.X_OK)]);
    if (found.status === "fulfilled") return candidate;
  }
  return undefined;
}

/**
 * Starts `program` on loopback and resolves once it answers PING. What it keeps is in `directory`: every write
 * is in its append-only file before it is acknowledged, so a killed server that is started there again knows
 * all that it acknowledged. Without a `port` a free one is found.
 */
export async function startRedis(program: string, directory: string, port?: number): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await launch(program, directory, port ?? (await freePort()));
    } catch (error) {
      // Somebody else can take the port between the finding and the using.
      const taken = error instanceof StartError && error.log.includes("Address already in use");
      if (!taken || port !== undefined || attempt === 5) throw error;
    }
  }
}

/** Removes what servers that ran in `directory` have left: the memory of the next one is empty. */
export async function forget(directory: string): Promise<void> {
  await rm(join(directory, "appendonlydir"), { recursive: true, force: true });
  await rm(join(directory, "appendonly.aof"), { force: true });
  await rm(join(directory, "dump.rdb"), { force: true });
}

class StartError extends Error {
  override readonly name = "StartError";
  readonly log: string;

  constructor(message: string, log: string) {
    super(`${message}:\n${log.trim().split("\n").slice(-5).join("\n")}`);
    this.log = log;
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
    // Written before each reply, which outlives the process; an fsync would only help against a power cut.
    appendfsync: "no",
    "auto-aof-rewrite-percentage": "0",
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn("/bin/sh", ["-c", guard, "sh", directory, program, ...flags], {
    // Its own group: a Ctrl-C in the terminal is for this process, which stops the servers in order.
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  const pid = await firstLine(child);
  const redis: RedisProcess = {
    url: `redis://127.0.0.1:${port}`,
    port,
    pid,
    async kill() {
      signal(pid);
      await exited;
    },
  };
  try {
    await untilItAnswers(redis.url, exited);
  } catch (error) {
    await redis.kill();
    const [log] = await Promise.allSettled([readFile(logFile, "utf8")]);
    throw new StartError((error as Error).message, log.status === "fulfilled" ? log.value : "");
  }
  return redis;
}

async function firstLine(child: ChildProcess): Promise<number> {
  for await (const line of createInterface({ input: child.stdout! })) return Number(line);
  throw new Error("redis-server could not be started: /bin/sh said nothing");
}

async function untilItAnswers(url: string, exited: Promise<void>): Promise<void> {
  let gone = false;
  const exit = exited.then(() => {
    gone = true;
  });
  for (let attempt = 0; attempt < 1000; attempt++) {
    if (gone) throw new Error("redis-server ended as soon as it was started");
    if (await answersPing(url)) return;
    await Promise.race([sleep(10), exit]);
  }
  throw new Error("redis-server did not answer PING for 10 s");
}

async function answersPing(url: string): Promise<boolean> {
  const [opened] = await Promise.allSettled([RedisConnection.open(url)]);
  if (opened.status === "rejected") return false;
  const [replies] = await Promise.allSettled([opened.value.send([["PING"]])]);
  opened.value.close();
  // While it loads its file it answers with an error.
  return replies.status === "fulfilled" && replies.value[0] instanceof StatusReply;
}

function signal(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
