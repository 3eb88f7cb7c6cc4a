import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DevEndpoints, startEndpoints } from "../../../src/dev/index.ts";
import type { Dialect } from "../../../src/index.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import { engines } from "../../support/redis-servers.ts";

// An endpoint of each dialect has the commands of that dialect, and refuses those of the others.

const ifEqual = 'return redis.call("SET", KEYS[1], "w", "IFEQ", "v")';

/** What a server of each dialect has, and the error of one that has it not. */
const commands = {
  "SET … IFEQ": [["SET", "k", "v", "IFEQ", "v"], /^ERR syntax error/],
  DELEX: [["DELEX", "none", "IFEQ", "v"], /^ERR unknown command 'DELEX'/],
  "SET … IFEQ in a script": [["EVAL", ifEqual, 1, "none"], /^ERR syntax error/],
  "a script with Upstash's flag": [
    ["EVAL", `${upstashFlag}return 1`, 0],
    /^ERR Unexpected flag in script shebang: allow-key-locking/,
  ],
  "a script with Upstash's flag and SET … IFEQ": [
    ["EVAL", upstashFlag + ifEqual, 1, "none"],
    /^ERR Unexpected flag in script shebang: allow-key-locking/,
  ],
  "SCAN … WITHTYPE": [["SCAN", 0, "WITHTYPE"], /^ERR syntax error/],
} as const;

type What = keyof typeof commands;
const native: readonly What[] = ["SET … IFEQ", "DELEX", "SET … IFEQ in a script"];
const known: Readonly<Record<Dialect, readonly What[]>> = {
  upstash: Object.keys(commands) as What[],
  "redis-8.4": native,
  redis: [],
};
const kinds = engines.flatMap((engine) =>
  (["upstash", "redis-8.4", "redis"] as const).map((dialect) => ({ engine, dialect })),
);

describe.each(kinds)("a local endpoint of dialect $dialect on $engine", ({ engine, dialect }) => {
  let local: DevEndpoints;
  beforeAll(async () => {
    local = await startEndpoints({ count: 1, engine, dialect });
  });
  afterAll(() => local.close());

  test("has the commands of its dialect, and refuses all others", async () => {
    for (const [what, [command, error]] of Object.entries(commands)) {
      const reply = local.endpoints[0]!.execute(command);
      if (known[dialect].includes(what as What)) await reply;
      else await expect(reply, what).rejects.toThrow(error);
    }
  });
});
