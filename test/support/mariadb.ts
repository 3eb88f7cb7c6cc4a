import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import mysql from "mysql2/promise";
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
  const server = spawn(mariadbServer!, options, { cwd: directory, stdio: "ignore" });
  // No server outlives the tests.
  const end = () => server.kill("SIGKILL");
  process.on("exit", end);
  const exited = once(server, "exit").then(() => process.off("exit", end));
  const url = `mysql://root@127.0.0.1:${port}`;
  await createDatabase(url, () => server.exitCode);
  return {
    url: `${url}/test`,
    async close() {
      end();
      await exited;
      await rm(directory, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Waits until the server answers. */
async function createDatabase(url: string, exitCode: () => number | null): Promise<void> {
  for (let left = 300; left > 0; left -= 1) {
    const [connected] = await Promise.allSettled([mysql.createConnection(url)]);
    if (connected.status === "fulfilled") {
      await connected.value.query("CREATE DATABASE test");
      return connected.value.end();
    }
    if (exitCode() !== null) throw new Error(`mariadbd has ended with ${exitCode()}`);
    await sleep(100);
  }
  throw new Error("mariadbd does not answer");
}
