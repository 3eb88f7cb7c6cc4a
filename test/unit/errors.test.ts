import { readFileSync } from "node:fs";
import vm from "node:vm";
import { describe, expect, test } from "vitest";
import { serverRemedies } from "../../src/cli/doctor/remedies.ts";
import * as errors from "../../src/errors/errors.ts";
import { permanentErrors } from "../../src/errors/server-errors.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "../../src/idempotency/errors.ts";

type Vote = errors.Vote;
const { EndpointError, isRedlockError, LockHeldError, LockLostError, QuorumError, RedlockError } = errors;

const timeout = new EndpointError("eu", "timeout", "no answer within 50 ms");
const refused = new EndpointError("us", "http", "HTTP 429, no usable reply", { status: 429 });
const votes = (...given: readonly Vote[]) => given;
const late = { endpoint: "eu", outcome: "error", cause: timeout } as const;

const all: readonly errors.RedlockError[] = [
  new RedlockError("LOCK_HELD", "m"),
  new LockHeldError(["a", 'b"'], 1_234.5, { holder: { note: "n", expiresIn: 70 } }),
  new QuorumError("acquire", ["a"], votes(late, { endpoint: "us", outcome: "granted" })),
  // It asks whether seconds were meant, if that may be the cause.
  new QuorumError("acquire", ["a"], [], { late: true, ttl: 30 }),
  new QuorumError("acquire", ["a"], votes(late), { ttl: 30 }),
  new QuorumError("acquire", ["a"], [], { late: true, ttl: 1_000 }),
  new QuorumError("acquire", ["a"], votes({ ...late, cause: refused }), { ttl: 30 }),
  new LockLostError(["a"], "it ended"),
  refused,
  new InProgressError("k", 29_999.6),
  new FingerprintMismatchError("k"),
  new LeaseLostError("k", "it ended"),
  new RecordCorruptError("k"),
  new DeadKeyError("k", 3),
  new ResultUnavailableError("k", "too-large"),
];

test("each error has its code and the message that is in errors.txt, and lists no name of its own", async () => {
  const lines = all.map((error) => {
    const { name } = error.constructor;
    expect(error).toBeInstanceOf(RedlockError);
    expect(isRedlockError(error)).toBe(true);
    expect(String(error)).toBe(`${name}: ${error.message}`);
    expect(error.stack?.split("\n")[0]).toContain(error.message);
    expect(Object.keys(error)).not.toContain("name");
    expect(JSON.stringify(error)).toContain(`"code":"${error.code}"`);
    return `${error.code} ${error}`;
  });
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("errors.txt");
});

describe("fields", () => {
  test("QuorumError: votes, and the first failure as cause", () => {
    const given = [
      { endpoint: "ap", outcome: "pending" },
      { endpoint: "us", outcome: "error", cause: refused },
      { endpoint: "eu", outcome: "error", cause: timeout },
    ] as const;
    const error = new QuorumError("release", ["a"], given);
    expect(error.votes).toBe(given);
    expect(error.cause).toBe(refused);
    expect(new QuorumError("acquire", ["a"], [{ endpoint: "e", outcome: "held" }]).cause).toBe(undefined);
  });

  test.each([0, 302, 400, 401, 403, 404, 408, 429, 500, 503])("EndpointError: status %i", (status) => {
    const { permanent } = new EndpointError("eu", "http", "HTTP", { status });
    expect(permanent).toBe([401, 403, 404].includes(status));
  });

  test("EndpointError: each permanent error of servers has one remedy", () => {
    const named = Object.keys(serverRemedies).flatMap((errors) => errors.split(", "));
    expect(new Set(named).size).toBe(named.length);
    expect(named).toEqual(expect.arrayContaining([...permanentErrors]));
  });

  // As the servers write them: Redis 6.2, 7.0 and 7.4, Valkey 8, and Upstash.
  test("EndpointError: what servers say is permanent, or passes, as in server-errors.txt", () => {
    const file = readFileSync(new URL("server-errors.txt", import.meta.url), "utf8");
    const lines = [...file.matchAll(/^(permanent|passes) +(.+)$/gm)];
    expect(lines.length).toBeGreaterThan(20);
    for (const [, expected, said = ""] of lines) {
      const { permanent } = new EndpointError("eu", "redis", said);
      expect(permanent, said).toBe(expected === "permanent");
    }
  });

  test("EndpointError: a Cluster's client that was redirected too often may get through later", () => {
    const said = "the command failed (Too many Cluster redirections. Last error: ReplyError: MOVED 866 a:1)";
    expect(new EndpointError("eu", "network", said).permanent).toBe(false);
  });
});

describe("isRedlockError", () => {
  test("is false for what only looks like one", () => {
    for (const value of [undefined, null, "LOCK_HELD", new Error("LOCK_HELD"), { code: "LOCK_HELD" }]) {
      expect(isRedlockError(value)).toBe(false);
    }
  });

  test("recognizes errors of another realm", () => {
    // What a second realm's copy of the class does, with that realm's own Error and symbols.
    const foreign: unknown = vm.runInNewContext(`
      const error = new Error("held");
      error.code = "LOCK_HELD";
      Object.defineProperty(error, Symbol.for("redlock-edge.error"), { value: true });
      error;
    `);
    expect(foreign).not.toBeInstanceOf(Error);
    expect(isRedlockError(foreign)).toBe(true);
    const local = new LockLostError(["a"], "gone");
    const context = { is: isRedlockError, error: local };
    expect(vm.runInNewContext("is(error) && error.code", context)).toBe("LOCK_LOST");
  });
});
