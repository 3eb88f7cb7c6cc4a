import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import mysql from "mysql2/promise";
import { startDatabase } from "./database-server.ts";
import { freePort } from "./free-port.ts";
import { mariadbServer, requireInCi } from "./programs.ts";

export { mariadbServer };

requireInCi(mariadbServer, "MariaDB");

/** A server of this test, with an empty database. */
export interface Mariadb {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a server of its own, in a temporary folder on a free port. */
export async function startMariadb(): Promise<Mariadb> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-mariadb-"));
  const port = await freePort();
  const options = [
    "--no-defaults",
    `--datadir=${directory}`,
    `--socket=${join(directory, "socket")}`,
    `--pid-file=${join(directory, "pid")}`,
    `--port=${port}`,
    "--bind-address=127.0.0.1",
    // Without accounts it needs no tables of its own, and starts in an empty folder at once.
    "--skip-grant-tables",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-log-file-size=8M",
    "--innodb-buffer-pool-size=32M",
    // As root it would not start otherwise.
    ...(process.getuid?.() === 0 ? ["--user=root"] : []),
  ];
  const url = `mysql://root@127.0.0.1:${port}`;
  const { server, exited } = await startDatabase(mariadbServer!, options, { cwd: directory }, async () => {
    const connection = await mysql.createConnection(url);
    await connection.query("CREATE DATABASE IF NOT EXISTS test");
    await connection.end();
  });
  return {
    url: `${url}/test`,
    async close() {
      server.kill("SIGKILL");
      await exited;
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
