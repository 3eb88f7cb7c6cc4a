import { expect, test } from "vitest";
import { memoryEndpoint, VirtualTime } from "../../../local/src/memory/index.ts";
import type { Failure } from "../../../src/cli/access.ts";
import { askClock } from "../../../src/cli/doctor/ask.ts";
import { questionsOf } from "../../../src/cli/doctor/questions.ts";
import { diagnose, reportText } from "../../../src/cli/doctor/report.ts";
import { type Examined, examine, type Seen, Session } from "../../../src/cli/doctor/session.ts";
import { layout } from "../../../src/cli/text.ts";
import { answerReason } from "../../../src/endpoints/post.ts";
import { type Endpoint, EndpointError } from "../../../src/index.ts";
import { systemRuntime } from "../../../src/runtime/runtime.ts";

// What doctor says of what was seen, in golden/advice.txt; and what it sees at endpoints in this process.

const works = { works: true };
const well: Examined = {
  name: "db",
  place: {
    number: 1,
    url: "https://db.upstash.io",
    variable: "UPSTASH_REDIS_REST_URL_1",
    open: () => memoryEndpoint(),
  },
  dialect: "upstash",
  seen: {
    rest: works,
    token: works,
    database: works,
    eval: works,
    evalsha: works,
    native: works,
    flag: works,
    clock: { works: true, roundTrip: 12.5, clock: 3 },
  },
};

const failed = (kind: Failure["kind"], message: string, status?: number) => ({
  failure: { kind, message, status },
});
const refused = (message: string) => failed("redis", `HTTP 400, ${message}`, 400);
const atFirst = (kind: Failure["kind"], message: string, status?: number): Record<string, Seen> => ({
  rest: failed(kind, message, status),
});
const noNative = refused("ERR syntax error");
const noFlag = refused("ERR Unexpected flag in script shebang: allow-key-locking");
const noScripts = refused("NOPERM this user has no permissions to run the 'evalsha' command");
/** Another place than that of `well`. */
const at = (place: Partial<Examined["place"]>) => ({ place: { ...well.place, ...place } });
const local = at({ url: "http://localhost:8079" });

/** What is wrong with the first of three endpoints; of `seen`, what is not as it is at one that is well. */
const scenes: readonly (readonly [what: string, seen: Record<string, Seen>, place?: Partial<Examined>])[] = [
  ["nothing", {}],
  ["a URL that cannot be used", atFirst("config", "endpoint.url is no URL")],
  ["a path", atFirst("config", "endpoint.url has a path (a gateway's: basePath)")],
  ["silence", atFirst("timeout", "no answer in time")],
  ["nothing listens", atFirst("network", "(ECONNREFUSED)")],
  [
    "no Redis server",
    atFirst("malformed", "PING has another reply than PONG"),
    at({ variable: "REDIS_URL_2" }),
  ],
  ["a port without TLS", atFirst("network", "(ERR_SSL_WRONG_VERSION_NUMBER)")],
  ["a proxy's certificate", atFirst("network", "(UNABLE_TO_VERIFY_LEAF_SIGNATURE)")],
  ["403", atFirst("http", "HTTP 403, ERR forbidden", 403)],
  ["a wrong token", atFirst("redis", "WRONGPASS", 400)],
  ["a wrong token, as others say it", atFirst("redis", "Invalid token")],
  ["a firewall's page", atFirst("http", answerReason("", 403), 403)],
  ["429", atFirst("http", "HTTP 429", 429)],
  ["a plan's limit", atFirst("redis", "ERR max daily request limit exceeded", 400)],
  ["404", atFirst("http", "HTTP 404", 404)],
  ["another protocol", atFirst("malformed", "no JSON", 200)],
  ["an error of Redis", atFirst("redis", "MISCONF", 400)],
  ["an unknown error of Redis", atFirst("redis", "ERR odd", 400)],
  ["a replica", { token: failed("redis", "READONLY You can't write against a read only replica.", 400) }],
  ["no scripts", { eval: noScripts }],
  [
    "scripts that are not remembered",
    { evalsha: { works: false, found: "an extension: no script is remembered" } },
  ],
  ["an outage while it tries commands", { native: failed("timeout", "no answer in time") }],
  ["an outage while it acquires", { evalsha: failed("http", "HTTP 502", 502) }],
  ["no right to read the clock", { clock: refused("NOPERM no permissions to run the 'time' command") }],
  ["far away", { clock: { roundTrip: 420 } }],
  ["a clock that is near", { clock: { clock: 1_000 } }],
  ["a clock that is behind", { clock: { clock: -5_000 } }],
];

test("advice", async () => {
  const printed = scenes.flatMap(([what, seen, place]) => {
    const { seen: usual, ...first } = well;
    // What follows on a failure is not asked.
    const before = seen.rest ? {} : seen.token ? { rest: works } : usual;
    const places = [
      { ...first, ...place, seen: { ...before, ...seen } },
      { ...well, ...at({ number: 2 }) },
      { ...well, ...at({ number: 3 }) },
    ];
    const lines = layout(reportText(diagnose(places)));
    return [
      `# ${what}`,
      ...lines.slice(
        0,
        lines.findIndex((line) => line.startsWith("2")),
      ),
      "",
    ];
  });
  await expect(printed.join("\n")).toMatchFileSnapshot("golden/advice.txt");
});

// By server: the dialect to use, and the level of the advice in each dialect.
const nothing = undefined;
test.each([
  ["with both", {}, "upstash", [nothing, "note", "note"]],
  ["without the flag", { flag: noFlag }, "redis-8.4", ["error", nothing, "note"]],
  ["without native commands", { native: noNative }, "redis", ["error", "error", nothing]],
  ["with neither", { native: noNative, flag: noFlag }, "redis", ["error", "error", nothing]],
] as const)("a server %s has the same dialect in each dialect", (_, seen, best, levels) => {
  for (const [index, dialect] of (["upstash", "redis-8.4", "redis"] as const).entries()) {
    const level = levels[index];
    const place = { ...well, dialect, seen: { ...well.seen, ...seen } };
    const fix = expect.stringContaining(`\`dialect: "${best}"\``);
    const advice = [place, { ...place, ...local }].map((each) => diagnose([each]).endpoints[0]!.advice);
    expect(advice[0]).toMatchObject(level ? [{ level, code: "DIALECT", fix }] : []);
    // Local endpoints emulate commands.
    expect(advice[1]!.map((each) => each.level)).toEqual(level === "error" ? ["error"] : []);
  }
});

const placeOf = (endpoint: Endpoint) => ({ number: 1, url: "", variable: "", open: () => endpoint });

/** A session with an endpoint that may answer some commands in its own way. */
function sessionOf(answer: (line: string) => unknown = () => undefined, timeout = 1_000) {
  const dialect = "redis";
  const endpoint = memoryEndpoint({ name: "e", dialect });
  const send: Endpoint["send"] = async (command, signal) =>
    (await answer(command.join(" "))) ?? endpoint.send(command, signal);
  const settings = {
    prefix: "p",
    timeout,
    id: "id",
    runtime: systemRuntime,
  };
  return {
    session: new Session(placeOf({ name: "e", dialect, exactReplies: true, send }), settings),
    endpoint,
  };
}

// What is refused, and what works; null: it was not asked. A refusal of one command: conformance-faults.test.ts.
test.each<[what: string, RegExp, seen: object]>([
  ["writes", /^SET/, { token: undefined, clock: true, native: null, eval: null }],
  ["the time", /^TIME$/, { token: true, clock: undefined, eval: true }],
  ["everything", /./, { rest: undefined, token: null, clock: null }],
])("sees that %s is refused", async (_, pattern, expected) => {
  const { session, endpoint } = sessionOf((line) => {
    if (pattern.test(line)) throw new EndpointError("e", "redis", "NO");
  });
  const [{ seen } = {}] = await examine([session], questionsOf(false));
  const found = Object.keys(expected).map((need) => [need, seen![need] ? seen![need].works : null]);
  expect(Object.fromEntries(found)).toEqual(expected);
  expect(endpoint.engine.execute(["KEYS", "*"])).toEqual([]);
});

test("an odd reply to SET … NX is no database that two endpoints share", async () => {
  const { session } = sessionOf((line) => (/^SET .*:all:/.test(line) ? "odd" : undefined));
  const [examined] = await examine([session], questionsOf(false));
  expect(examined!.seen.database).toEqual({ works: true });
});

test("waits no longer than its timeout", async () => {
  const silent: Endpoint["send"] = (_, signal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new EndpointError("e", "timeout", "no answer")));
    });
  const { settings } = sessionOf(undefined, 20).session;
  const session = new Session(placeOf({ name: "e", dialect: "redis", send: silent }), settings);
  const [examined] = await examine([session], questionsOf(false));
  expect(examined!.seen.rest).toEqual({
    failure: { kind: "timeout", message: "no answer", status: undefined },
  });
});

test("reads the clock from the fastest reply, and none from a reply that is no time", async () => {
  const time = new VirtualTime();
  const took = [500, 40, 20, 60, 80];
  const answers: unknown[] = ["OK", [], ["1"], ["now", "0"], null];
  const send: Endpoint["send"] = async () => {
    if (took.length === 0) return answers.shift();
    const now = time.now() + 2_000;
    await time.sleep(took.shift()!);
    return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
  };
  const { settings } = sessionOf().session;
  const session = new Session(placeOf({ name: "e", dialect: "redis", send }), { ...settings, runtime: time });
  // 2 s, less the 20 ms that it took and a whole millisecond. The round trip is that in the middle.
  const seen = { works: true, roundTrip: 60, clock: 1_979 };
  expect(await time.settle(askClock(session), 60_000)).toEqual(seen);
  while (answers.length > 0) expect(await time.settle(askClock(session), 60_000)).toEqual({});
});
