import type { Dialect } from "../index.ts";
import type { Conformance } from "./conformance-examine.ts";
import type { Need, Seen } from "./conformance-session.ts";
import { type Level, needs, requirements } from "./conformance-table.ts";
import { isRefusal } from "./doctor-advice.ts";
import { counted, table, wrapped } from "./text.ts";

// What the answers to a conformance check mean. No I/O.

/** `unknown`: not asked, not answered, or not allowed to this token. */
export type Answer = "yes" | "no" | "unknown";

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

/** What was seen at an endpoint means this. */
export function judge({ seen, ...conformance }: Conformance): ConformanceResult {
  const rows = needs.map((need) => rowOf(need, seen[need], conformance.dialect));
  return { ...conformance, ok: rows.every(({ level }) => level !== "error"), rows };
}

function rowOf(need: Need, seen: Seen = {}, dialect: Dialect | undefined): Row {
  const answer = answerOf(need, seen);
  const found = seen.failure?.message ?? seen.found;
  if (answer === "yes") return { need, answer, found };
  const { instead, ...usual } = requirements[need];
  const { level, without } = instead?.(seen, dialect) ?? usual;
  return { need, answer, found, level, without };
}

function answerOf(need: Need, seen: Seen): Answer {
  const { works, failure } = seen;
  if (works !== undefined) return works ? "yes" : "no";
  if (!failure) return "unknown";
  // These two are the permission, and the answer.
  if (need === "rest" || need === "token") return "no";
  // A refusal says that the server has not got it; an outage, silence and a missing permission say nothing.
  return isRefusal(failure) && !/NOPERM/.test(failure.message) ? "no" : "unknown";
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
