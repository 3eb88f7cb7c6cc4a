import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { freePort } from "./free-port.ts";
import { postgresPrograms, requireInCi } from "./programs.ts";

const run = promisify(execFile);

export { postgresPrograms };

requireInCi(postgresPrograms, "PostgreSQL");

/** A server of this test, with an empty database. */
export interface Postgres {
  readonly url: string;
  /** The variables that say the same to `pg` and `psql`. */
  readonly env: Record<string, string>;
  /** Kills every process of the server with SIGKILL, as a crash of its machine would. */
  kill(): Promise<void>;
  /** Starts a server that was killed on the same files; resolves once it has recovered. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a server of its own, in a temporary folder on a free port. */
export async function startPostgres(): Promise<Postgres> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-postgres-"));
  const data = join(directory, "data");
  const user = await serverUser();
  if (user) await chown(directory, user.uid, user.gid);
  await run(join(postgresPrograms!, "initdb"), ["-D", data, "-U", "test", "-A", "trust", "--no-sync"], {
    cwd: directory,
    ...user,
  });
  const port = await freePort();
  const url = `postgres://test@127.0.0.1:${port}/postgres`;
  const start = () => {
    const settings = ["listen_addresses=127.0.0.1", "max_prepared_transactions=2"];
    const options = [
      "-D",
      data,
      "-p",
      `${port}`,
      "-k",
      directory,
      ...settings.flatMap((each) => ["-c", each]),
    ];
    const server = spawn(join(postgresPrograms!, "postgres"), options, {
      cwd: directory,
      stdio: "ignore",
      ...user,
    });
    // No server outlives the tests.
    const end = () => server.kill("SIGKILL");
    process.on("exit", end);
    const exited = once(server, "exit").then(() => process.off("exit", end));
    return { server, exited };
  };
  let { server, exited } = start();
  const answering = () => until(url, () => server.exitCode);
  await answering();
  return {
    url,
    env: { PGHOST: "127.0.0.1", PGPORT: `${port}`, PGUSER: "test", PGDATABASE: "postgres" },
    async kill() {
      const pids = await query(url, "SELECT pid FROM pg_stat_activity");
      for (const pid of [server.pid!, ...pids.map(({ pid }) => Number(pid))]) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // This one has ended already: the connection that asked is among them.
        }
      }
      await exited;
    },
    async restart() {
      ({ server, exited } = start());
      await answering();
    },
    async close() {
      server.kill("SIGQUIT");
      await exited;
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Postgres refuses to run as root: then the user that Debian's package creates. */
async function serverUser(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const [uid, gid] = await Promise.all(["-u", "-g"].map((flag) => run("id", [flag, "postgres"])));
  return { uid: Number(uid!.stdout), gid: Number(gid!.stdout) };
}

/** Waits until the server answers. */
async function until(url: string, exitCode: () => number | null): Promise<void> {
  for (let left = 300; left > 0; left -= 1) {
    const [answer] = await Promise.allSettled([query(url, "SELECT 1")]);
    if (answer.status === "fulfilled") return;
    if (exitCode() !== null) throw new Error(`postgres has ended with ${exitCode()}`);
    await sleep(100);
  }
  throw new Error("postgres does not answer");
}

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
