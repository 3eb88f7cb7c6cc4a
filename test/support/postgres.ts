import { execFile } from "node:child_process";
import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import pg from "pg";
import { startDatabase } from "./database-server.ts";
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
  const settings = ["listen_addresses=127.0.0.1", "max_prepared_transactions=2", "fsync=off"];
  const places = ["-D", data, "-p", `${port}`, "-k", directory];
  const { server, exited } = await startDatabase(
    join(postgresPrograms!, "postgres"),
    [...places, ...settings.flatMap((each) => ["-c", each])],
    { cwd: directory, ...user },
    async () => {
      const client = new pg.Client({ connectionString: url });
      client.on("error", () => undefined);
      await client.connect();
      await client.end();
    },
  );
  return {
    url,
    env: { PGHOST: "127.0.0.1", PGPORT: `${port}`, PGUSER: "test", PGDATABASE: "postgres" },
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
