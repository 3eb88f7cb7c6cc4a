import type { Dialect } from "../../index.ts";
import { isRefusal } from "../failure.ts";
import { counted, layout } from "../text.ts";
import { type Level, type Requirement, requirements } from "./requirements.ts";
import type { Examined, Seen } from "./session.ts";

// What the answers to a conformance check mean. No I/O.

/** `unknown`: not asked, not answered, or not allowed to this token. */
export type Answer = "yes" | "no" | "unknown";

/** What was found of one requirement. */
export interface Row {
  readonly need: string;
  readonly answer: Answer;
  /** What was seen: the error, a size, a policy. */
  readonly found?: string | undefined;
  /** Unless the answer is `yes`: how bad that is, and what happens. */
  readonly level?: Level;
  readonly without?: string;
}

/** What was found at one endpoint. */
export interface ConformanceResult extends Omit<Examined, "seen" | "url"> {
  /** Whether it has all without which it does not work. */
  readonly ok: boolean;
  readonly rows: readonly Row[];
}

/** What was found at all. */
export interface ConformanceReport {
  readonly conformance: true;
  readonly ok: boolean;
  readonly endpoints: readonly ConformanceResult[];
}

/** What was seen means this. */
export function judgeAll(examined: readonly Examined[]): ConformanceReport {
  const endpoints = examined.map(judge);
  return { conformance: true, ok: endpoints.every(({ ok }) => ok), endpoints };
}

/** What was seen at an endpoint means this. */
export function judge({ seen, url: _, ...examined }: Examined): ConformanceResult {
  const rows = Object.entries(requirements).map(([need, requirement]) =>
    rowOf({ need, ...requirement }, seen[need], examined.dialect),
  );
  return { ...examined, ok: rows.every(({ level }) => level !== "error"), rows };
}

function rowOf(
  { need, instead, ...usual }: Requirement & { readonly need: string },
  seen: Seen = {},
  dialect: Dialect | undefined,
): Row {
  const answer = answerOf(need, seen);
  const found = seen.failure?.message ?? seen.found;
  if (answer === "yes") return { need, answer, found };
  const { level, without } = instead?.(seen, dialect) ?? usual;
  return { need, answer, found, level, without };
}

function answerOf(need: string, { works, failure }: Seen): Answer {
  if (works !== undefined) return works ? "yes" : "no";
  if (!failure) return "unknown";
  // These two are the permission, and the answer.
  if (need === "rest" || need === "token") return "no";
  // A refusal says that the server has not got it; an outage, silence and a missing permission say nothing.
  return isRefusal(failure) && !/NOPERM/.test(failure.message) ? "no" : "unknown";
}

/** The results as lines. */
export function conformanceLines({ endpoints: results }: ConformanceReport, width: number): string[] {
  const requests = results.reduce((sum, each) => sum + each.requests, 0);
  const well = results.filter(({ ok }) => ok).length;
  const left = results.filter(({ isClean }) => !isClean).map(({ number }) => number);
  const rest =
    left.length === 0 ? "is deleted" : `expires within 2 minutes where it is not deleted: ${left.join(", ")}`;
  const conclusion = `${well} of ${results.length} ok; ${counted(requests, "request")}. What they wrote ${rest}`;
  return [...results.flatMap((each) => resultLines(each, width)), ...layout([[conclusion]], width)];
}

function resultLines({ number, endpoint, dialect, ok, rows }: ConformanceResult, width: number): string[] {
  // Where nothing could be asked, only the reason is of interest.
  const isAsked = rows.find(({ need }) => need === "token")?.answer === "yes";
  const shown = rows.filter(({ answer, found }) => isAsked || answer === "yes" || found !== undefined);
  const title = [`${number}  ${endpoint}`, ok ? "ok" : "ERROR", ...(dialect ? [`dialect ${dialect}`] : [])];
  return [title.join("  "), ...layout(shown.flatMap(cellsOf), width), ""];
}

function cellsOf({ need, answer, found, level, without }: Row): string[][] {
  const { label } = requirements[need]!;
  const texts = [
    found ?? (answer === "unknown" ? "not asked" : undefined),
    level && `${level}${answer === "unknown" ? ", if not" : ""}: ${without}`,
  ].filter((text) => text !== undefined);
  const [first = "", ...more] = texts;
  return [[`   ${label}`, answer, first], ...more.map((text) => ["", "", text])];
}
