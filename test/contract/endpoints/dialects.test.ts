import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type LocalEndpoints, start } from "../../../local/src/index.ts";
import { type Command, type Dialect, type Endpoint, httpEndpoint, Redlock } from "../../../src/index.ts";
import { inspect } from "../../../src/inspect/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { engines } from "../../support/redis-servers.ts";

// An endpoint of each dialect has the commands of that dialect, and refuses those of the others; and doctor finds the
// dialect that works.

/** A script as the library sends it to Upstash. */
const flagged: Command[] = [];
const recorder: Endpoint = {
  name: "recorder",
  dialect: "upstash",
  send: async (command) => void flagged.push(command),
};
await inspect(new Redlock({ endpoints: [recorder] }), "none").catch(() => undefined);

/** What a server of each dialect has, and the error of one that has it not. */
const commands = {
  "SET … IFEQ": [["SET", "k", "v", "IFEQ", "v"], /^ERR syntax error/],
  DELEX: [["DELEX", "none", "IFEQ", "v"], /^ERR unknown command 'DELEX'/],
  "a script with Upstash's flag": [
    flagged[0]!.map(String),
    /^ERR Unexpected flag in script shebang: allow-key-locking/,
  ],
} as const;

type What = keyof typeof commands;
const native: readonly What[] = ["SET … IFEQ", "DELEX"];
const known: Readonly<Record<Dialect, readonly What[]>> = {
  upstash: Object.keys(commands) as What[],
  "redis-8.4": native,
  redis: [],
};
/** What the embedded engine has: no Lua, and of SCAN what every Redis has. */
const own: readonly What[] = ["SET … IFEQ", "DELEX", "a script with Upstash's flag"];
const dialects = Object.keys(known) as Dialect[];
const kinds = engines.flatMap((engine) => dialects.map((dialect) => ({ engine, dialect })));

describe.each(kinds)("a local endpoint of dialect $dialect on $engine", ({ engine, dialect }) => {
  let local: LocalEndpoints;
  beforeAll(async () => {
    local = await start({ count: 1, engine, dialect });
  });
  afterAll(() => local.close());

  test("has the commands of its dialect, and refuses all others", async () => {
    const asked = Object.entries(commands).filter(
      ([what]) => engine === "redis" || own.includes(what as What),
    );
    for (const [what, [command, error]] of asked) {
      const reply = local.endpoints[0]!.execute(command);
      if (known[dialect].includes(what as What)) await expect(reply, what).resolves.not.toThrow();
      else await expect(reply, what).rejects.toThrow(error);
    }
  });

  const endpoint = (named: Dialect) => {
    const { url, token } = local.endpoints[0]!;
    return httpEndpoint({ url, token, name: "e", dialect: named });
  };

  const others = ["upstash" as const].filter((named) => named !== dialect);
  test.each(others)("fails at once where it is used as %s", async (named) => {
    const redlock = new Redlock({ ...patient, endpoints: [endpoint(named)], wait: Infinity });
    const acquired = redlock.acquire(newResource(), { fencing: true });
    await expect(acquired).rejects.toMatchObject({ votes: [{ cause: { permanent: true } }] });
  });
});
