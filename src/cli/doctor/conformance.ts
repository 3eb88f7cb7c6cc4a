import type { Dialect } from "../../index.ts";
import { isRefusal } from "../failure.ts";
import { layout } from "../text.ts";
import { type Level, type Requirement, requirements } from "./requirements.ts";
import type { Seen, SeenByNeed } from "./session.ts";

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

/** What was seen at an endpoint means this. */
export function rowsOf(seen: SeenByNeed, dialect: Dialect | undefined): Row[] {
  return Object.entries(requirements).map(([need, requirement]) => {
    return { need, ...rowOf(requirement, seen[need] ?? {}, dialect) };
  });
}

function rowOf(
  { dialects = [], instead, ...usual }: Requirement,
  seen: Seen,
  dialect: Dialect | undefined,
): Omit<Row, "need"> {
  const answer = answerOf(seen);
  const found = seen.failure?.message ?? seen.found;
  if (answer === "yes") return { answer, found };
  const { level, without } = instead?.(seen) ?? usual;
  const isNeeded = dialect && dialects.includes(dialect);
  return { answer, found, level: isNeeded ? "error" : level, without };
}

function answerOf({ works, failure }: Seen): Answer {
  if (works !== undefined) return works ? "yes" : "no";
  // A refusal says that the server has not got it; an outage, silence and a missing permission say nothing.
  return failure && isRefusal(failure) && !/NOPERM/.test(failure.message) ? "no" : "unknown";
}

/** The rows as lines. */
export function rowLines(rows: readonly Row[], width: number): string[] {
  return layout(rows.flatMap(cellsOf), width);
}

function cellsOf({ need, answer, found, level, without }: Row): string[][] {
  const { label } = requirements[need]!;
  const consequence = level && `${level}${answer === "unknown" ? ", if not" : ""}: ${without}`;
  const [first = "", ...more] = [found, consequence].filter((text) => text !== undefined);
  return [[`   ${label}`, answer, first], ...more.map((text) => ["", "", text])];
}
