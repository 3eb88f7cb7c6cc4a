import { Redis } from "ioredis";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { RedisConnection } from "../../local/src/rest/redis/connection.ts";
import { startServerWith } from "./redis-servers.ts";

/** A real redis-server on which not everything is allowed. */
export interface LimitedRedis {
  /** Sends a command as a user who may do everything. */
  execute(...command: readonly string[]): Promise<unknown>;
  /** Opens a REST endpoint whose user has these rights (`+set`, `~redlock:*`, …), and those that the REST server needs. */
  openAs(...rights: readonly string[]): Promise<LocalEndpoints>;
  /** A client of a user who has exactly these rights. */
  connectAs(...rights: readonly string[]): Promise<Redis>;
  close(): Promise<void>;
}

let users = 0;

/** @param flags more of redis-server's command line */
export async function startLimitedRedis(...flags: readonly string[]): Promise<LimitedRedis> {
  const server = await startServerWith(...flags);
  const connection = await RedisConnection.open(server.url);
  const execute = async (...command: readonly string[]) => (await connection.send([command]))[0];
  const addUser = async (rights: readonly string[]) => {
    users += 1;
    const username = `user${users}`;
    await execute("ACL", "SETUSER", username, "reset", "on", ">secret", ...rights);
    return username;
  };
  return {
    execute,
    async openAs(...rights) {
      const url = server.url.replace("//", `//${await addUser(rights)}:secret@`);
      return start({ redis: [url], dialect: "redis" });
    },
    async connectAs(...rights) {
      const user = { username: await addUser(rights), password: "secret" };
      return new Redis(server.port, { ...user, maxRetriesPerRequest: 0, enableReadyCheck: false });
    },
    async close() {
      connection.close();
      await server.kill();
    },
  };
}
