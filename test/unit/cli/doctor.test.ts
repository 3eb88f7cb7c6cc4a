import { expect, onTestFinished, test, vi } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { examine } from "../../../src/cli/doctor/doctor.ts";
import { questionsOf } from "../../../src/cli/doctor/questions.ts";
import { remedyFor } from "../../../src/cli/doctor/remedies.ts";
import { answerReason } from "../../../src/endpoints/post.ts";
import { type Endpoint, EndpointError } from "../../../src/index.ts";

// What doctor says of each failure, in golden/advice.txt; and what it sees at endpoints in this process.

const rest = "UPSTASH_REDIS_REST_URL_1";

const failures: readonly (readonly [
  kind: Parameters<typeof remedyFor>[0]["kind"],
  message: string,
  status?: number | undefined,
  variable?: string,
])[] = [
  ["config", "endpoint.url is no URL"],
  ["timeout", "no answer in time"],
  ["network", "the request failed (ECONNREFUSED)"],
  ["network", "the request failed (ENOTFOUND)"],
  ["network", "the request failed (ERR_SSL_WRONG_VERSION_NUMBER)"],
  ["network", "the request failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE)"],
  ["malformed", "PING has another reply than PONG", undefined, "REDIS_URL_2"],
  ["malformed", "no JSON", 200],
  ["http", answerReason("", 403), 403],
  ["http", "HTTP 404", 404],
  ["http", "HTTP 403, ERR forbidden", 403],
  ["redis", "WRONGPASS", 400],
  ["redis", "WRONGPASS", undefined, "REDIS_URL_2"],
  ["redis", "Invalid token"],
  ["redis", "NOPERM this user has no permissions to run the 'set' command", 400],
  ["http", "HTTP 429", 429],
  ["redis", "ERR max daily request limit exceeded", 400],
  ["redis", "MISCONF", 400],
  ["redis", "READONLY You can't write against a read only replica.", 400],
  ["redis", "ERR odd", 400],
  ["http", "HTTP 502", 502],
];

test("golden/advice.txt", async () => {
  const lines = failures.map(([kind, message, status, variable = rest]) => {
    const { code, fix } = remedyFor({ kind, status, endpoint: "", message }, variable);
    return `${kind} ${message}\n  ${code}: ${fix}\n`;
  });
  await expect(lines.join("\n")).toMatchFileSnapshot("golden/advice.txt");
});

/** What doctor finds at an endpoint that answers some commands in its own way. */
function foundAt(answer: (line: string, signal: AbortSignal) => unknown, timeout = 5_000) {
  const endpoint = memoryEndpoint({ name: "e", dialect: "redis" });
  const send: Endpoint["send"] = async (command, signal) =>
    (await answer(command.join(" "), signal)) ?? endpoint.send(command, signal);
  const open = () => ({ name: "e", dialect: "redis", exactReplies: true, send }) as const;
  const settings = { prefix: "p", timeout, id: "id" };
  return examine({ number: 1, variable: rest, open }, settings, questionsOf(false));
}

test.each<[what: string, pattern: RegExp, kind: EndpointError["kind"], message: string, codes: string[]]>([
  ["writing is not allowed", /^SET/, "redis", "NOPERM no permissions", ["READ_ONLY"]],
  ["the time is not allowed", /^TIME/, "redis", "NOPERM no permissions", ["CLOCK"]],
  ["nothing is allowed", /./, "redis", "WRONGPASS", ["TOKEN"]],
  ["it fails in between", /^EVAL/, "http", "HTTP 502", ["SERVER"]],
])("%s", async (_, pattern, kind, message, codes) => {
  const { advice } = await foundAt((line) => {
    if (pattern.test(line))
      throw new EndpointError("e", kind, message, { status: kind === "http" ? 502 : 400 });
  });
  expect(advice.map(({ code }) => code)).toEqual(codes);
});

test("waits no longer than its timeout", async () => {
  const silence = (_: string, signal: AbortSignal) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new EndpointError("e", "timeout", "no answer")));
    });
  expect(await foundAt(silence, 20)).toMatchObject({ rows: [], advice: [{ code: "UNREACHABLE" }] });
});

test("an odd reply to SET … NX is no database that two endpoints share", async () => {
  const { advice } = await foundAt((line) => (/^SET .*:all:/.test(line) ? "odd" : undefined));
  expect(advice).toEqual([]);
});

// By how far the clock is ahead, in ms, and how long the requests for the time take.
test.each<[ahead: number, took: number[], codes: string[]]>([
  [900, [1], []],
  [5_000, [1], ["CLOCK"]],
  [-5_000, [1], ["CLOCK"]],
  [1_100, [250], []],
  [0, [420], ["SLOW"]],
  [0, [4_000, 20, 60], []],
  [Number.NaN, [1], []],
])("a clock that is %s ms ahead, read in %j ms: %j", async (ahead, took, codes) => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let asked = 0;
  const { advice, roundTrip } = await foundAt((line) => {
    if (line !== "TIME") return undefined;
    const way = took[asked % took.length]!;
    asked += 1;
    const now = Date.now() + ahead + way / 2;
    vi.advanceTimersByTime(way);
    return [String(Math.floor(now / 1_000)), String((now % 1_000) * 1_000)];
  });
  expect(advice.map(({ code }) => code)).toEqual(codes);
  expect(roundTrip).toBe(Math.min(...took));
});
