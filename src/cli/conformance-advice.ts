import type { Dialect } from "../index.ts";
import type { Conformance, Need } from "./conformance-examine.ts";
import type { Seen } from "./conformance-session.ts";
import { clockText, isRefusal, maxClockDistance } from "./doctor-advice.ts";
import { counted, table, wrapped } from "./text.ts";

// What the answers to a conformance check mean. No I/O.

/** `unknown`: not asked, not answered, or not allowed to this token. */
export type Answer = "yes" | "no" | "unknown";

/** `error`: the endpoint does not work. `warning`: it works, but not well. `note`: to know. */
export type Level = "error" | "warning" | "note";

/** Something that the library needs, and what happens without it. */
export interface Requirement {
  readonly label: string;
  readonly level: Level;
  readonly without: string;
}

/** What was found of one requirement. */
export interface Row {
  readonly need: Need;
  readonly answer: Answer;
  /** What was seen: the error, a size, a policy. */
  readonly found?: string | undefined;
  /** Unless the answer is `yes`: how bad that is, and what happens. */
  readonly level?: Level;
  readonly without?: string;
}

/** What was found at one endpoint. */
export interface ConformanceResult
  extends Pick<Conformance, "endpoint" | "number" | "dialect" | "requests" | "isClean"> {
  /** The variable that has its URL. */
  readonly variable?: string | undefined;
  /** Whether it has all without which it does not work. */
  readonly ok: boolean;
  readonly rows: readonly Row[];
}

/** What all needs are, in the order in which they are shown. */
export const requirements: Readonly<Record<Need, Requirement>> = {
  rest: {
    label: "Upstash's REST API",
    level: "error",
    without: "nothing works; doctor without --conformance says what to fix",
  },
  token: {
    label: "token may write",
    level: "error",
    without: "nothing works; doctor without --conformance says what to fix",
  },
  nx: { label: "SET … NX PX", level: "error", without: "a lock would be given twice, or never end" },
  "nx-get": {
    label: "SET … NX GET PX",
    level: "note",
    without: "idempotent runs and waiters send a script, which costs more commands",
  },
  ifeq: {
    label: "SET … IFEQ PX",
    level: "note",
    without: "an extension is a script, as in the dialect redis",
  },
  delex: {
    label: "DELEX … IFEQ",
    level: "note",
    without: "a release is a script, as in the dialect redis",
  },
  eval: {
    label: "EVAL",
    level: "error",
    without: "no fence, no several resources, no inspect and free; in the dialect redis no release",
  },
  evalsha: { label: "EVALSHA", level: "error", without: "every script fails" },
  noscript: {
    label: "error NOSCRIPT",
    level: "error",
    without: "a script fails until somebody else has loaded it",
  },
  flag: {
    label: "#!lua flags=allow-…",
    level: "note",
    without: "scripts are sent without the flag, which only Upstash has",
  },
  pexpireat: {
    label: "PEXPIREAT in scripts",
    level: "warning",
    without: "ReadWriteLock and ReentrantLock fail",
  },
  once: {
    label: "executed once",
    level: "error",
    without: "a free lock looks held: its own request is in the way",
  },
  replies: {
    label: "reply of its request",
    level: "error",
    without: "a client believes the reply of another one",
  },
  pipeline: {
    label: "/pipeline",
    level: "warning",
    without: "calls of one turn are a request each",
  },
  request: {
    label: "request of 1 MB",
    level: "warning",
    without: "larger results are not stored, and calls that share a larger request fail",
  },
  reply: {
    label: "reply of 1 MB",
    level: "warning",
    without: "larger results cannot be replayed",
  },
  subscribe: {
    label: "/subscribe",
    level: "note",
    without: "waiters poll: wakeUp has no effect",
  },
  clock: {
    label: "clock within 1 s",
    level: "warning",
    without: "ages and deadlines are wrong; locks do not compare clocks",
  },
  reads: {
    label: "reads see last write",
    level: "note",
    without: "your own reads may be stale. If scripts are, so is inspect",
  },
  eviction: {
    label: "nothing is evicted",
    level: "warning",
    without: "when memory is full, locks, fences and results vanish: set maxmemory-policy noeviction",
  },
  wait: {
    label: "WAIT",
    level: "note",
    without: "the library does not send it: a failover may lose a lock",
  },
};

const needs = Object.keys(requirements) as Need[];

/** What was seen at an endpoint means this. */
export function judge(conformance: Conformance): ConformanceResult {
  const { endpoint, number, dialect, requests, isClean, seen, clock } = conformance;
  const all = { ...seen, ...(clock && { clock: clockSeen(clock) }) };
  const rows = needs.map((need) => rowOf(need, all[need], dialect));
  const ok = rows.every(({ level }) => level !== "error");
  return { endpoint, number, dialect, ok, requests, isClean, rows };
}

function clockSeen(clock: NonNullable<Conformance["clock"]>): Seen {
  return { works: Math.abs(clock.ahead) - clock.within <= maxClockDistance, found: clockText(clock) };
}

function rowOf(need: Need, seen: Seen | undefined, dialect: Dialect | undefined): Row {
  const answer = answerOf(need, seen);
  const found = seen?.failure?.message ?? seen?.found;
  if (answer === "yes") return { need, answer, found };
  return { need, answer, found, ...consequence(need, seen, dialect) };
}

function answerOf(need: Need, seen: Seen = {}): Answer {
  const { works, failure } = seen;
  if (works !== undefined) return works ? "yes" : "no";
  if (!failure) return "unknown";
  // These two are the permission, and the answer.
  if (need === "rest" || need === "token") return "no";
  // A refusal says that the server has not got it; an outage, silence and a missing permission say nothing.
  return isRefusal(failure) && !/NOPERM/.test(failure.message) ? "no" : "unknown";
}

/** What follows from an answer that is not yes, and how bad that is. */
function consequence(
  need: Need,
  seen: Seen | undefined,
  dialect: Dialect | undefined,
): Pick<Row, "level" | "without"> {
  const { level, without } = requirements[need];
  const message = seen?.failure?.message ?? seen?.found ?? "";
  const isNative = need === "ifeq" || need === "delex";
  if ((isNative && dialect && dialect !== "redis") || (need === "flag" && dialect === "upstash")) {
    const fix = need === "flag" ? "redis-8.4 or redis" : "redis";
    return { level: "error", without: `calls fail in the dialect ${dialect}: set dialect ${fix}` };
  }
  // The library knows what these three say.
  if (need === "nx-get" && !/syntax error/.test(message)) {
    return { level: "error", without: "idempotent runs and waiters fail" };
  }
  if (need === "evalsha" && /NOSCRIPT/.test(message)) {
    return { level: "warning", without: "every script is sent twice, the second time by its text" };
  }
  if (need === "pipeline" && !/one command per request/.test(message)) {
    return { level: "error", without: "calls of one turn fail together" };
  }
  return { level, without };
}

/** The widest line. */
const width = 80;

/** The results as lines. */
export function conformanceLines(results: readonly ConformanceResult[]): string[] {
  const requests = results.reduce((sum, each) => sum + each.requests, 0);
  const well = results.filter(({ ok }) => ok).length;
  const left = results.filter(({ isClean }) => !isClean).map(({ number }) => number);
  const rest =
    left.length === 0 ? "is deleted" : `expires within 2 minutes where it is not deleted: ${left.join(", ")}`;
  return [
    ...results.flatMap(resultLines),
    `${well} of ${results.length} ok; ${counted(requests, "request")}. What they wrote ${rest}`,
  ];
}

function resultLines({ number, endpoint, dialect, ok, rows }: ConformanceResult): string[] {
  // Where nothing could be asked, only the reason is of interest.
  const isAsked = rows.find(({ need }) => need === "token")?.answer === "yes";
  const shown = rows.filter(({ answer, found }) => isAsked || answer === "yes" || found !== undefined);
  const heads = table(shown.map(({ need, answer }) => [requirements[need].label, answer]));
  const labels = Object.values(requirements).map(({ label }) => label.length);
  const column = Math.max(...labels) + "   unknown    ".length;
  const lines = shown.flatMap((row, index) => {
    const texts = [...foundLines(row, width - column), ...withoutLines(row, width - column)];
    const [first = "", ...more] = texts;
    return [`   ${heads[index]!}`.padEnd(column) + first, ...more.map((text) => " ".repeat(column) + text)];
  });
  const title = [`${number}  ${endpoint}`, ok ? "ok" : "ERROR", dialect ? `dialect ${dialect}` : ""];
  return [title.join("  ").trimEnd(), ...lines.map((line) => line.trimEnd()), ""];
}

function foundLines({ found, answer }: Row, most: number): string[] {
  if (found === undefined) return answer === "unknown" ? ["not asked"] : [];
  return wrapped(found, most);
}

function withoutLines({ answer, level, without }: Row, most: number): string[] {
  if (level === undefined) return [];
  return wrapped(`${level}${answer === "unknown" ? ", if not" : ""}: ${without}`, most);
}
