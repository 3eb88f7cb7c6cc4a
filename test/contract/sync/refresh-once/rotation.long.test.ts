import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { LocalEndpoints } from "../../../../local/src/index.ts";
import { keyOf } from "../../../../src/redis/keys.ts";
import { type Postgres, postgresPrograms, startPostgres } from "../../../support/postgres.ts";
import { openRealEndpoints } from "../../../support/redis-servers.ts";
import type { CallerSettings, Order, Outcomes } from "./caller.ts";
import { startTokenServer, type TokenServer } from "./token-server.ts";

// Three processes, three redis-servers, Postgres, and an authorization server that revokes a login when one of its refresh
// tokens is used twice.

describe.skipIf(postgresPrograms === undefined)("tokens that are rotated", () => {
  let local: LocalEndpoints;
  let database: Postgres;
  let pool: pg.Pool;
  let server: TokenServer;
  let program: string;
  const callers: ChildProcess[] = [];
  let account = "";
  let before = { refreshes: 0, revoked: 0 };

  beforeAll(async () => {
    [local, database, server] = await Promise.all([
      openRealEndpoints(3),
      startPostgres(),
      startTokenServer(),
    ]);
    pool = new pg.Pool({ connectionString: database.url });
    await pool.query(
      "CREATE TABLE tokens (account text PRIMARY KEY, access_token text, refresh_token text, expires_at bigint, fence bigint)",
    );
    program = join(process.cwd(), "node_modules/.cache/redlock-edge", `refresh-caller-${process.pid}.mjs`);
    await build({
      entryPoints: [join(import.meta.dirname, "caller.ts")],
      outfile: program,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      external: ["pg"],
      logLevel: "error",
    });
  });
  afterAll(async () => {
    for (const caller of callers) caller.kill("SIGKILL");
    await pool.end();
    await Promise.all([local.close(), database.close(), server.close()]);
  });
  beforeEach(async () => {
    account = `account-${crypto.randomUUID()}`;
    const login = await server.login();
    await pool.query("INSERT INTO tokens VALUES ($1, 'old', $2, 0, 0)", [account, login]);
    before = { refreshes: server.refreshes, revoked: server.revoked };
  });

  function start(): ChildProcess {
    const settings: CallerSettings = {
      endpoints: local.endpoints.map(({ url, token, name }) => ({ url, token, name })),
      database: database.url,
      server: server.url,
    };
    const caller = fork(program, [JSON.stringify(settings)], { execArgv: [] });
    callers.push(caller);
    return caller;
  }

  async function ask(caller: ChildProcess, order: Omit<Order, "account">): Promise<Outcomes> {
    caller.send({ account, ...order });
    const [outcomes] = await once(caller, "message");
    return outcomes;
  }

  /** A process that dies in its only call, and the end of its lock. */
  async function dieIn(dies: Order["dies"]): Promise<void> {
    const caller = start();
    caller.send({ account, calls: 1, dies });
    await once(caller, "exit");
    const key = keyOf("redlock", "lock", account);
    await Promise.all(local.endpoints.map((endpoint) => endpoint.execute(["DEL", key])));
  }

  const happened = () => ({
    refreshes: server.refreshes - before.refreshes,
    revoked: server.revoked - before.revoked,
  });
  const stored = async () =>
    (await pool.query("SELECT access_token FROM tokens WHERE account = $1", [account])).rows[0].access_token;

  test("are refreshed once per expiry by 51 calls in three processes", async () => {
    const processes = [start(), start(), start()];
    for (let expiry = 1; expiry <= 10; expiry += 1) {
      const outcomes = (await Promise.all(processes.map((each) => ask(each, { calls: 17 })))).flat();
      expect(outcomes).toEqual(new Array(51).fill(await stored()));
      expect(happened()).toEqual({ refreshes: expiry, revoked: 0 });
      await pool.query("UPDATE tokens SET expires_at = 0 WHERE account = $1", [account]);
    }
  });

  test.each([
    ["before it refreshes", "before"],
    ["when it has written", "written"],
  ] as const)("survive a process that dies %s", async (_, dies) => {
    await dieIn(dies);
    const outcomes = await ask(start(), { calls: 5 });
    expect(outcomes).toEqual(new Array(5).fill(await stored()));
    expect(happened()).toEqual({ refreshes: 1, revoked: 0 });
    await pool.query("UPDATE tokens SET expires_at = 0 WHERE account = $1", [account]);
    expect(await ask(start(), { calls: 1 })).toEqual([await stored()]);
    expect(happened()).toEqual({ refreshes: 2, revoked: 0 });
  });

  test("do not survive that an answer is lost, as the page says: the next refresh uses the same token again", async () => {
    await dieIn("answered");
    expect(await ask(start(), { calls: 1 })).toEqual(["invalid_grant"]);
    expect(happened()).toEqual({ refreshes: 1, revoked: 1 });
    account = `account-${crypto.randomUUID()}`;
    await pool.query("INSERT INTO tokens VALUES ($1, 'old', $2, 0, 0)", [account, await server.login()]);
    const caller = start();
    expect(await ask(caller, { calls: 1, loses: true })).toEqual(["lost"]);
    expect(await ask(caller, { calls: 1 })).toEqual(["invalid_grant"]);
  });
});
