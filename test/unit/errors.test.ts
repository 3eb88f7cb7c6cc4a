import vm from "node:vm";
import { describe, expect, test } from "vitest";
import * as errors from "../../src/errors.ts";
import {
  DeadKeyError,
  FingerprintMismatchError,
  InProgressError,
  LeaseLostError,
  RecordCorruptError,
  ResultUnavailableError,
} from "../../src/idempotency/errors.ts";

const { EndpointError, isRedlockError, LockHeldError, LockLostError, QuorumError, RedlockError } = errors;

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
    'a run of "k" is under way; ask again in 30000 ms',
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
    for (const message of ["ERR wrongpass", "XNOAUTH", "NOPERMIT", "ERR unknown command"]) {
      expect(says(message)).toBe(false);
    }
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
    const path = "../../src/errors.ts?second";
    const copy = (await import(path)) as typeof errors;
    expect(copy.RedlockError).not.toBe(RedlockError);
    const error = new copy.LockHeldError(["a"], 0);
    expect(error).not.toBeInstanceOf(RedlockError);
    expect(isRedlockError(error)).toBe(true);
    expect(copy.isRedlockError(timeout)).toBe(true);
  });
});
