import { quorumOf } from "../../quorum/tally.ts";
import { isRefusal } from "../access.ts";
import { blocks, layout } from "../text.ts";
import { type Advice, adviceOn, countAdvice } from "./advice.ts";
import { type Consequence, requirements } from "./requirements.ts";
import type { Examined, Seen } from "./session.ts";

// What doctor says of all that it has seen. No I/O.

/** `unknown`: not asked, not answered, or not allowed to this token. */
export type Answer = "yes" | "no" | "unknown";

/** What was found of one requirement and, unless the answer is `yes`, what follows. */
export interface Row extends Partial<Consequence> {
  readonly need: string;
  readonly answer: Answer;
  /** What was seen: the error, a size, a policy. */
  readonly found?: string | undefined;
}

/** The diagnosis of one endpoint. */
export interface Diagnosis
  extends Pick<Examined, "endpoint" | "number" | "variable" | "dialect">,
    Pick<Seen, "roundTrip" | "clock"> {
  /** Whether locks can use it. */
  readonly ok: boolean;
  readonly advice: readonly Advice[];
  /** What was found of all that the library needs: without `--conformance`, what is missing only. */
  readonly rows: readonly Row[];
}

/** The diagnosis of all. */
export interface Report {
  /** Whether every endpoint is well. */
  readonly ok: boolean;
  readonly quorum: number;
  readonly endpoints: readonly Diagnosis[];
  /** What concerns them together. */
  readonly advice: readonly Advice[];
}

/** What was found means this. */
export function diagnose(places: readonly Examined[], isConformance = false): Report {
  const endpoints = places.map((place): Diagnosis => {
    const { endpoint, number, variable, dialect, seen } = place;
    const advice = adviceOn(place);
    const all = rowsOf(place);
    const ok = !advice.some(isError);
    // Where something else is wrong, only that is of interest.
    const rows = isConformance ? all : all.filter((row) => ok && row.need in seen && isError(row));
    const { roundTrip, clock } = seen.clock ?? {};
    const facts = { endpoint, number, variable, dialect, roundTrip, clock, advice, rows };
    return { ...facts, ok: ok && !rows.some(isError) };
  });
  const quorum = quorumOf(endpoints.length);
  return { ok: endpoints.every(({ ok }) => ok), quorum, endpoints, advice: countAdvice(endpoints.length) };
}

const isError = ({ level }: Partial<Consequence>) => level === "error";

/** What was seen at an endpoint means this; nothing, where nothing could be asked. */
export function rowsOf({ seen, dialect }: Pick<Examined, "seen" | "dialect">): Row[] {
  if (!seen.token?.works) return [];
  return Object.entries(requirements).map(([need, { dialects = [], instead, level, without }]): Row => {
    const answer = answerOf(seen[need]);
    const found = seen[need]?.failure?.message ?? seen[need]?.found;
    if (answer === "yes") return { need, answer, found };
    if (instead?.[0].test(found ?? "")) return { need, answer, found, ...instead[1] };
    const isNeeded = dialect && dialects.includes(dialect);
    return { need, answer, found, level: isNeeded ? "error" : level, without };
  });
}

function answerOf({ works, failure }: Seen = {}): Answer {
  if (works !== undefined) return works ? "yes" : "no";
  // A refusal says that the server has not got it; an outage, silence and a missing permission say nothing.
  return failure &&
    isRefusal(failure) &&
    !/NOPERM|executing the script can't|ACL failure/.test(failure.message)
    ? "no"
    : "unknown";
}

/** The report as lines. */
export function reportLines({ endpoints, advice, quorum }: Report, width: number): string[] {
  const titles = blocks(
    endpoints.map(({ number, endpoint, ok, dialect, roundTrip }) => {
      const facts = [
        dialect && `dialect ${dialect}`,
        roundTrip !== undefined && `round trip ${roundTrip} ms`,
      ];
      return [`${number}`, endpoint, ok ? "ok" : "ERROR", facts.filter(Boolean).join(", ")];
    }),
    width,
  );
  const adviceLines = ({ level, message, fix }: Advice) =>
    [
      [`   ${level}:`, message],
      ["     fix:", fix],
    ].flatMap((row) => layout([row], width));
  const well = endpoints.filter(({ ok }) => ok).length;
  const outcome = well >= quorum ? "locks can be acquired" : "no lock can be acquired";
  return [
    ...endpoints.flatMap((each, index) => [
      ...titles[index]!,
      ...each.advice.flatMap(adviceLines),
      ...layout(each.rows.flatMap(rowCells), width),
    ]),
    "",
    ...layout([[`${well} of ${endpoints.length} ok, a quorum is ${quorum}: ${outcome}`]], width),
    ...advice.flatMap(adviceLines),
  ];
}

function rowCells({ need, answer, found, level, without }: Row): string[][] {
  const consequence = level && `${level}${answer === "unknown" ? ", if not" : ""}: ${without}`;
  const [first = "", ...more] = [found, consequence].filter((text) => text !== undefined);
  return [[`   ${requirements[need]!.label}`, answer, first], ...more.map((text) => ["", "", text])];
}
