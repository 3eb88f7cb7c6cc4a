import { describe, expect, onTestFinished, test, vi } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { type Advice, diagnose, failureAdvice, reportLines } from "../../../src/cli/doctor-advice.ts";
import { type Examination, examineAll, type Failure, works } from "../../../src/cli/doctor-probe.ts";
import { answerReason } from "../../../src/endpoints/failure.ts";
import { type Dialect, type Endpoint, EndpointError } from "../../../src/index.ts";

const well: Examination = {
  endpoint: "db.upstash.io",
  number: 1,
  variable: "UPSTASH_REDIS_REST_URL_1",
  dialect: "upstash",
  isLoopback: false,
  isEncrypted: true,
  write: "yes",
  native: "yes",
  flag: "yes",
  scripts: "yes",
  roundTrip: 12.5,
  clock: { ahead: 3, within: 7 },
};
const three = [well, { ...well, number: 2 }, { ...well, number: 3 }];

/** The advice about the first of three endpoints, the others being well. */
function adviceFor(change: Partial<Examination>): readonly Advice[] {
  return diagnose([{ ...well, ...change }, ...three.slice(1)]).endpoints[0]!.advice;
}

describe("diagnose", () => {
  test("has nothing to say about three endpoints that are well", () => {
    const report = diagnose(three);
    expect(report).toMatchObject({ ok: true, quorum: 2, advice: [] });
    expect(reportLines(report)).toEqual([
      "1  db.upstash.io  ok  dialect upstash  round trip 12.5 ms  clock equal (± 7 ms)",
      "2  db.upstash.io  ok  dialect upstash  round trip 12.5 ms  clock equal (± 7 ms)",
      "3  db.upstash.io  ok  dialect upstash  round trip 12.5 ms  clock equal (± 7 ms)",
      "",
      "3 of 3 ok, a quorum is 2: so locks can be acquired",
    ]);
  });

  const redis = (message: string): Failure => ({
    kind: "redis",
    status: 400,
    message: `HTTP 400, ${message}`,
  });
  const noNative = redis("ERR syntax error");
  const noFlag = redis("ERR Unexpected flag in script shebang: allow-key-locking");
  const noScripts = redis("NOPERM this user has no permissions to run the 'evalsha' command");
  test.each<[string, Advice["level"], Advice["code"], Partial<Examination>, RegExp]>([
    ["a second variable for one database", "error", "SAME_DATABASE", { write: 2 }, /URL_1 to another one/],
    [
      "a read-only token",
      "error",
      "READ_ONLY",
      { write: redis("NOPERM this user has no permissions to run the 'set' command") },
      /TOKEN_1 .* not to its read-only token/,
    ],
    [
      "a token that may not run scripts",
      "error",
      "SCRIPTS",
      { flag: noScripts, scripts: noScripts },
      /EVAL and EVALSHA/,
    ],
    [
      "an outage while it tries commands",
      "error",
      "UNREACHABLE",
      { native: { kind: "timeout", message: "no answer in time" } },
      /--timeout/,
    ],
    ["a slow endpoint", "warning", "SLOW", { roundTrip: 420 }, /timeout above 1300 ms/],
    ["a token over http", "warning", "NOT_ENCRYPTED", { isEncrypted: false }, /https:\/\//],
    [
      "a server's wrong clock",
      "warning",
      "CLOCK",
      { clock: { ahead: -5_000, within: 7 } },
      /clock of that server/,
    ],
  ])("finds %s", (_, level, code, change, fix) => {
    const advice = adviceFor(change);
    expect(advice).toMatchObject([{ level, code, fix: expect.stringMatching(fix) }]);
    expect(diagnose([{ ...well, ...change }]).ok).toBe(level !== "error");
  });

  test.each([
    ["a clock within what can be measured", { clock: { ahead: 1_500, within: 800 } }],
    ["http on loopback", { isEncrypted: false, isLoopback: true }],
    ["emulated commands on loopback", { dialect: "redis", isLoopback: true }],
  ] as const)("does not mind %s", (_, change) => {
    expect(adviceFor(change)).toEqual([]);
  });

  // By server: the dialect to use, and the level of the advice in each dialect.
  const nothing = undefined;
  test.each([
    ["with both", {}, "upstash", { upstash: nothing, "redis-8.4": "note", redis: "note" }],
    [
      "without the flag",
      { flag: noFlag },
      "redis-8.4",
      { upstash: "error", "redis-8.4": nothing, redis: "note" },
    ],
    [
      "without native commands",
      { native: noNative },
      "redis",
      { upstash: "error", "redis-8.4": "error", redis: nothing },
    ],
    [
      "with neither",
      { native: noNative, flag: noFlag },
      "redis",
      { upstash: "error", "redis-8.4": "error", redis: nothing },
    ],
  ] as const)("names the same dialect in each dialect, for a server %s", (_, change, best, levels) => {
    for (const dialect of ["upstash", "redis-8.4", "redis"] as const) {
      const level = levels[dialect];
      const fix = expect.stringContaining(`\`dialect: "${best}"\``);
      expect(adviceFor({ ...change, dialect })).toMatchObject(level ? [{ level, code: "DIALECT", fix }] : []);
      const isLocal = adviceFor({ ...change, dialect, isLoopback: true }).map((each) => each.level);
      expect(isLocal).toEqual(level === "error" ? ["error"] : []);
    }
  });

  test("blames this machine's clock where most endpoints agree", () => {
    const ahead = three.map((each) => ({ ...each, clock: { ahead: 9_000, within: 7 } }));
    const { endpoints } = diagnose(ahead);
    for (const { advice } of endpoints)
      expect(advice).toMatchObject([{ fix: expect.stringMatching(/this machine/) }]);
  });

  test.each([
    [1, ["note"]],
    [2, ["warning"]],
    [3, []],
    [4, ["warning"]],
  ])("says what %i endpoints survive", (count, levels) => {
    const { advice } = diagnose(
      Array.from({ length: count }, (_, index) => ({ ...well, number: index + 1 })),
    );
    expect(advice.map(({ level }) => level)).toEqual(levels);
  });
});

test.each<[Advice["code"], Partial<Failure>, Partial<Examination>, RegExp]>([
  ["CONFIG", { kind: "config" }, {}, /URL_1 and UPSTASH_REDIS_REST_TOKEN_1/],
  ["UNREACHABLE", { kind: "timeout" }, {}, /--timeout/],
  ["UNREACHABLE", { message: "(ECONNREFUSED)" }, { isLoopback: true }, /npx redis-rest-local/],
  ["UNREACHABLE", { message: "(ECONNREFUSED)" }, {}, /host and port/],
  ["CONFIG", { kind: "config", message: "set basePath" }, {}, /--base-path/],
  ["CONFIG", { kind: "config", message: "(allowInsecure: true …" }, {}, /--allow-insecure/],
  ["UNREACHABLE", { message: "(ENOTFOUND)" }, {}, /host and port of .*URL_1/],
  ["UNREACHABLE", { message: "(ERR_SSL_WRONG_VERSION_NUMBER)" }, {}, /URL_1 to begin with http:/],
  ["UNREACHABLE", { message: "(UNABLE_TO_VERIFY_LEAF_SIGNATURE)" }, {}, /certificates/],
  ["UNREACHABLE", { message: "(CERT_HAS_EXPIRED)" }, {}, /TLS/],
  ["UNREACHABLE", { message: "(ECONNRESET)" }, {}, /network/],
  ["TOKEN", { kind: "http", status: 401 }, {}, /TOKEN_1 to the REST token/],
  ["TOKEN", { kind: "redis", status: 400, message: "WRONGPASS" }, {}, /TOKEN_1 to the REST token/],
  ["TOKEN", { kind: "http", status: 403, message: "HTTP 403, ERR forbidden" }, {}, /TOKEN_1 to the REST/],
  ["TOKEN", { kind: "redis", message: "Invalid token" }, {}, /TOKEN_1 to the REST token/],
  ["LIMIT", { kind: "http", status: 429 }, {}, /plan/],
  ["LIMIT", { kind: "redis", status: 400, message: "ERR max daily request limit exceeded" }, {}, /plan/],
  ["NOT_REST", { kind: "http", status: 404 }, {}, /REST URL/],
  ["NOT_REST", { kind: "malformed", status: 200 }, {}, /REST URL/],
  ["NOT_REST", { kind: "http", status: 403, message: answerReason("", 403) }, {}, /REST URL/],
  ["SERVER", { kind: "http", status: 503 }, {}, /status page/],
  ["SERVER", { kind: "redis", status: 400, message: "MISCONF" }, {}, /log/],
])("%s: %j", (code, failure, examination, fix) => {
  const advice = failureAdvice({ kind: "network", message: "", ...failure }, { ...well, ...examination });
  expect(advice).toMatchObject({ level: "error", code, fix: expect.stringMatching(fix) });
});

describe("examineAll", () => {
  const settings = { prefix: "p", timeout: 1_000, id: "unguessable" };
  const url = new URL("https://db.example");

  /** Clocks go on only when the test advances them. */
  function holdClocks(): void {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    onTestFinished(() => void vi.useRealTimers());
  }

  /** Examines endpoints; `refuse` says which commands are answered with an error. */
  function examine(
    endpoints: readonly Endpoint[],
    refuse: (command: string) => string | undefined = () => undefined,
  ) {
    const sent: string[] = [];
    const candidates = endpoints.map((endpoint) => ({
      url,
      endpoint: {
        ...endpoint,
        async send(command, signal) {
          const line = command.join(" ");
          sent.push(line);
          const error = refuse(line);
          if (error) throw new EndpointError(endpoint.name, "redis", error);
          return endpoint.send(command, signal);
        },
      } satisfies Endpoint,
    }));
    return examineAll(candidates, settings).then((examinations) => ({ examinations, sent }));
  }

  /** An endpoint that answers a command in its own way. */
  const answering = (first: string, answer: () => Promise<unknown>): Endpoint => {
    const endpoint = memoryEndpoint({ name: "e" });
    return {
      name: "e",
      dialect: "redis",
      send: (command, signal) => (command[0] === first ? answer() : endpoint.send(command, signal)),
    };
  };

  test.each([
    ["https://db.example", false, true],
    ["http://localhost:8079", true, false],
    ["http://127.0.0.2:8079", true, false],
    ["http://[::1]:8079", true, false],
    ["http://127.example", false, false],
    ["http://localhost.example", false, false],
    ["http://my-localhost", false, false],
  ])("knows whether %s is on this machine, and encrypted", async (address, isLoopback, isEncrypted) => {
    const endpoint = answering("TIME", async () => null);
    const [examination] = await examineAll([{ endpoint, url: new URL(address) }], settings);
    expect(examination).toMatchObject({ isLoopback, isEncrypted });
  });

  test("reads a clock that is ahead, and none from a reply that is no time", async () => {
    const clockOf = async (answer: () => unknown) => {
      const { examinations, sent } = await examine([answering("TIME", async () => answer())]);
      return { ...examinations[0], asked: sent.filter((line) => line === "TIME").length };
    };
    holdClocks();
    const ahead = () => [String(Math.floor(Date.now() / 1_000) + 100), String((Date.now() % 1_000) * 1_000)];
    const { clock, asked, roundTrip } = await clockOf(ahead);
    expect([asked, roundTrip, clock]).toEqual([5, 0, { ahead: 100_000, within: 1 }]);
    for (const reply of ["OK", [], ["1"], ["now", "0"], null]) {
      const unknown = await clockOf(() => reply);
      expect(unknown).not.toHaveProperty("clock");
      expect([unknown.asked, unknown.scripts]).toEqual([1, "yes"]);
    }
  });

  test("reads the clock from the fastest reply", async () => {
    holdClocks();
    const took = [500, 40, 20, 60, 80];
    const answer = async () => {
      const now = Date.now();
      vi.advanceTimersByTime(took.shift()!);
      return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
    };
    const { examinations } = await examine([answering("TIME", answer)]);
    // Half of the 20 ms, and a whole millisecond. The round trip is that in the middle.
    expect(examinations[0]).toMatchObject({ roundTrip: 60, clock: { ahead: -10, within: 11 } });
  });

  test.each([
    ["redis", undefined, undefined, true],
    ["redis-8.4", "yes", undefined, true],
    ["redis-8.4", undefined, undefined, false],
    ["upstash", "yes", "yes", true],
    ["upstash", "yes", undefined, false],
  ] as const)("the dialect %s, native %s and flag %s: works %s", (dialect, native, flag, expected) => {
    expect(works({ dialect, native, flag })).toBe(expected);
  });

  test("waits no longer than its timeout", async () => {
    const silent: Endpoint = {
      name: "e",
      dialect: "redis",
      send: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(new EndpointError("e", "timeout", "no answer")));
        }),
    };
    const [examination] = await examineAll([{ endpoint: silent, url }], { ...settings, timeout: 20 });
    expect(examination).toMatchObject({ unreachable: { kind: "timeout", message: "no answer" } });
  });

  // What is refused, by a server of which dialect, and what is found of it; absent: it was not asked.
  const failure = (message: string) => ({ kind: "redis", message });
  test.each<[what: string, Dialect, refused: RegExp, found: object, absent?: string]>([
    ["nothing", "upstash", /^$/, { write: "yes", native: "yes", flag: "yes", scripts: "yes" }],
    ["the flag", "upstash", /allow-key/, { native: "yes", flag: failure("NO"), scripts: "yes" }],
    ["native commands", "upstash", /IFEQ/, { native: failure("NO"), scripts: "yes" }, "flag"],
    [
      "what it does not know",
      "redis",
      /^$/,
      { native: failure("Redis refused: ERR syntax error"), scripts: "yes" },
    ],
    ["scripts", "upstash", /^EVAL/, { native: "yes", scripts: failure("NO") }],
    ["writes", "redis", /^SET/, { write: failure("NO"), roundTrip: expect.any(Number) }, "scripts"],
    ["the time", "redis", /^TIME$/, { write: "yes" }, "clock"],
    ["everything", "redis", /./, { unreachable: failure("NO") }, "write"],
  ])("where %s is refused, dialect %s", async (what, dialect, refused, found, absent = "unreachable") => {
    const endpoint = memoryEndpoint({ name: "e", dialect });
    const { examinations, sent } = await examine([endpoint], (line) =>
      refused.test(line) ? "NO" : undefined,
    );
    expect(examinations[0]).toMatchObject({ endpoint: "e", number: 1, ...found });
    expect(examinations[0]).not.toHaveProperty(absent);
    if (what === "everything") expect(sent).toEqual(["PING"]);
    // Only the fence counter may be left, and it expires.
    for (const key of endpoint.engine.execute(["KEYS", "*"]) as string[]) {
      expect(key).toBe("p:fence:{doctor:unguessable:1}");
      expect(endpoint.engine.execute(["PTTL", key])).toBeLessThanOrEqual(30_000);
    }
  });
});
