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

const { EndpointError, isRedlockError, LockHeldError, LockLostError, QuorumError, RedlockError } = errors;

const isListed = (list: readonly string[], said: string) => list.includes(said);
const timeout = new EndpointError("eu", "timeout", "no answer within 50 ms");
const tooMany = () => new EndpointError("us", "http", "HTTP 429, no usable reply", { status: 429 });
const refused = tooMany();
const all: [name: string, code: string, make: () => errors.RedlockError, message: string][] = [
  ["RedlockError", "LOCK_HELD", () => new RedlockError("LOCK_HELD", "m"), "m"],
  [
    "LockHeldError",
    "LOCK_HELD",
    () => new LockHeldError(["a", 'b"'], 1_234.5, { holder: { note: "n", expiresIn: 70 } }),
    '"a", "b\\"" is held by someone else (waited 1235 ms)',
  ],
  [
    "QuorumError",
    "NO_QUORUM",
    () =>
      new QuorumError(
        "acquire",
        ["a"],
        [
          { endpoint: "eu", outcome: "error", cause: timeout },
          { endpoint: "us", outcome: "granted" },
        ],
      ),
    'no quorum to acquire "a": eu: no answer within 50 ms; us: granted',
  ],
  [
    "LockLostError",
    "LOCK_LOST",
    () => new LockLostError(["a"], "it ended"),
    'the lock on "a" is lost: it ended',
  ],
  ["EndpointError", "ENDPOINT_ERROR", tooMany, "us: HTTP 429, no usable reply"],
  [
    "InProgressError",
    "IN_PROGRESS",
    () => new InProgressError("k", 29_999.6),
    'a run of "k" is under way, and its lease ends in 30000 ms unless the run extends it; to get its result, set wait',
  ],
  [
    "FingerprintMismatchError",
    "FINGERPRINT_MISMATCH",
    () => new FingerprintMismatchError("k"),
    '"k" was used before with a different fingerprint',
  ],
  [
    "LeaseLostError",
    "LEASE_LOST",
    () => new LeaseLostError("k", "it ended"),
    'the lease on "k" is lost: it ended',
  ],
  [
    "RecordCorruptError",
    "RECORD_CORRUPT",
    () => new RecordCorruptError("k"),
    'what is stored for "k" is not an idempotency record',
  ],
  ["DeadKeyError", "DEAD_KEY", () => new DeadKeyError("k", 3), '"k" is dead: 3 runs of it did not end'],
  [
    "ResultUnavailableError",
    "RESULT_UNAVAILABLE",
    () => new ResultUnavailableError("k", "too-large"),
    '"k" is complete, but its result was not stored: too-large',
  ],
];

// Made in each test: what is made while the file is loaded belongs to no test, as a tool that mutates sees it.
test.each(all)(
  "%s has its name, code and message, and lists no name of its own",
  (name, code, make, message) => {
    const error = make();
    expect(error).toBeInstanceOf(RedlockError);
    expect(error.constructor.name).toBe(name);
    expect(isRedlockError(error)).toBe(true);
    expect(error.code).toBe(code);
    expect(String(error)).toBe(`${name}: ${message}`);
    expect(error.stack?.split("\n")[0]).toContain(message);
    expect(Object.keys(error)).not.toContain("name");
    expect(JSON.stringify(error)).toContain(`"code":"${code}"`);
  },
);

describe("fields", () => {
  test("QuorumError: votes, and the first failure as cause", () => {
    const votes = [
      { endpoint: "ap", outcome: "pending" },
      { endpoint: "us", outcome: "error", cause: refused },
      { endpoint: "eu", outcome: "error", cause: timeout },
    ] as const;
    const error = new QuorumError("release", ["a"], votes);
    expect(error.votes).toBe(votes);
    expect(error.cause).toBe(refused);
    expect(new QuorumError("acquire", ["a"], [{ endpoint: "e", outcome: "held" }]).cause).toBe(undefined);
  });

  test.each([
    ["answers that came too late", [], { late: true, ttl: 30 }, true],
    [
      "an endpoint that did not answer in time",
      [{ endpoint: "eu", outcome: "error", cause: timeout }],
      { ttl: 30 },
      true,
    ],
    ["a ttl of a second", [], { late: true, ttl: 1_000 }, false],
    [
      "answers that have nothing to do with time",
      [{ endpoint: "us", outcome: "error", cause: refused }],
      { ttl: 30 },
      false,
    ],
  ] as const)("QuorumError asks whether seconds were meant, after %s: %j", (_, votes, time, asks) => {
    const { message } = new QuorumError("acquire", ["a"], votes, time);
    const hint = ": 30 is 30 ms; did you mean 30_000?";
    if (asks) expect(message.endsWith(hint)).toBe(true);
    else expect(message).not.toContain("did you mean");
  });

  test.each([0, 302, 400, 401, 403, 404, 408, 429, 500, 503])("EndpointError: status %i", (status) => {
    const { permanent } = new EndpointError("eu", "http", "HTTP", { status });
    expect(permanent).toBe([401, 403, 404].includes(status));
  });

  test("EndpointError: Redis' refusals of the token are permanent", () => {
    const says = (message: string) => new EndpointError("eu", "redis", message).permanent;
    const wrong = "WRONGPASS invalid or missing auth token";
    for (const message of [wrong, "NOAUTH Authentication required", "NOPERM this user has no permissions"]) {
      expect(says(message)).toBe(true);
      expect(says(`ERR ${message}`)).toBe(true);
    }
    for (const message of ["ERR wrongpass", "XNOAUTH", "NOPERMIT"]) expect(says(message)).toBe(false);
  });

  test("EndpointError: each error of the table is permanent or passes, and has one remedy", () => {
    const rows = Object.keys(serverRemedies).map((errors) => errors.split(", "));
    const named = rows.flat();
    expect(new Set(named).size).toBe(named.length);
    expect(named).toEqual(expect.arrayContaining([...permanentErrors]));
    for (const errors of rows) {
      const [first = false, ...others] = errors.map((said) => isListed(permanentErrors, said));
      expect(others).toEqual(others.map(() => first));
    }
    for (const said of named) {
      const permanent = isListed(permanentErrors, said);
      const around = (text: string) => new EndpointError("eu", "redis", text).permanent;
      expect([around(said), around(`HTTP 400, ERR ${said}: 'x'`)]).toEqual([permanent, permanent]);
      expect(around(`X${said}Y`)).toBe(false);
    }
  });

  // As the servers write them: Redis 6.2, 7.0 and 7.4, Valkey 8, and Upstash.
  test.each([
    [true, "NOPERM this user has no permissions to run the 'evalsha' command"],
    [true, "NOPERM this user has no permissions to access one of the keys used as arguments"],
    [
      true,
      "ERR The user executing the script can't run this command or subcommand script: 1a, on @user_script:8.",
    ],
    [
      true,
      "ERR The user executing the script can't access at least one of the keys mentioned in the command",
    ],
    [true, "ERR ACL failure in script: User a has no permissions to run the 'time' command script: 8a2f"],
    [true, "ERR unknown command 'EVAL', with args beginning with: 'x'"],
    [true, "ERR Unknown Redis command called from script script: 1a, on @user_script:8."],
    [true, "ERR Command is not available: 'DELEX'. See https://upstash.com/docs/redis for details"],
    [true, "ERR Error compiling script (new function): user_script:1: unexpected symbol near '#'"],
    [true, "ERR Unexpected flag in script shebang: allow-key-locking"],
    [true, "CROSSSLOT Keys in request don't hash to the same slot"],
    [true, "MOVED 866 10.0.0.7:6379"],
    [true, "ASK 866 10.0.0.7:6379"],
    [true, "ERR max daily request limit exceeded. Limit: 10000, Usage: 10000. See https://upstash.com"],
    [true, "ERR max requests limit exceeded. Limit: 500000, Usage: 500000. See https://upstash.com"],
    [true, "ERR max request size exceeded. Limit: 10485760 bytes, Actual: 10485801 bytes"],
    [false, "LOADING Redis is loading the dataset in memory"],
    [false, "READONLY You can't write against a read only replica."],
    [false, "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."],
    [false, "OOM command not allowed when used memory > 'maxmemory'."],
    [
      false,
      "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    ],
    [false, "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."],
    [false, "CLUSTERDOWN The cluster is down"],
    [false, "TRYAGAIN Multiple keys request during rehashing of slot"],
    [false, "NOREPLICAS Not enough good replicas to write."],
    [false, "NOSCRIPT No matching script. Please use EVAL."],
  ])("EndpointError: permanent is %j for %s", (permanent, said) => {
    expect(new EndpointError("eu", "redis", said).permanent).toBe(permanent);
  });

  test("EndpointError: a Cluster's client that was redirected too often may get through later", () => {
    const said = "the command failed (Too many Cluster redirections. Last error: ReplyError: MOVED 866 a:1)";
    expect(new EndpointError("eu", "network", said).permanent).toBe(false);
  });
});

describe("isRedlockError", () => {
  test.each([undefined, null, "LOCK_HELD", new Error("LOCK_HELD"), { code: "LOCK_HELD" }, () => undefined])(
    "is false for %o",
    (value) => {
      expect(isRedlockError(value)).toBe(false);
    },
  );

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

  test("recognizes errors of a second copy of the package, where instanceof fails", async () => {
    const path = "../../src/errors/errors.ts?second";
    const copy = (await import(path)) as typeof errors;
    expect(copy.RedlockError).not.toBe(RedlockError);
    const error = new copy.LockHeldError(["a"], 0);
    expect(error).not.toBeInstanceOf(RedlockError);
    expect(isRedlockError(error)).toBe(true);
    expect(copy.isRedlockError(timeout)).toBe(true);
  });
});
