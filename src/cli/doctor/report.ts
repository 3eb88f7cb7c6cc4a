import type { Dialect } from "../../index.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { isRefusal } from "../access.ts";
import { blocks, counted, duration, layout } from "../text.ts";
import { type Consequence, type Level, questions, requirements } from "./questions.ts";
import { isLoopback, remedyFor } from "./remedies.ts";
import type { Examined, Seen, SeenByNeed } from "./session.ts";

// What doctor says of all that it has seen. No I/O.

/** Something that doctor has to say. */
export interface Advice {
  readonly level: Level;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

/** `unknown`: not asked, not answered, or not allowed to this token. */
export type Answer = "yes" | "no" | "unknown";

/** The finding of one requirement and, unless the answer is `yes`, its consequence. */
export interface Row extends Partial<Consequence> {
  readonly need: string;
  readonly answer: Answer;
  /** The observation: the error, a size, a policy. */
  readonly found?: string | undefined;
}

/** The diagnosis of one endpoint. */
export interface Diagnosis extends Omit<Examined, "url" | "seen">, Pick<Seen, "roundTrip" | "clock"> {
  /** Whether locks can use it. */
  readonly ok: boolean;
  readonly advice: readonly Advice[];
  /** The findings of all requirements of the library: without `--conformance`, only the missing ones. */
  readonly rows: readonly Row[];
}

/** The diagnosis of all. */
export interface Report {
  /** Whether every endpoint is well. */
  readonly ok: boolean;
  /** Whether `new Redlock` takes them. */
  readonly starts: boolean;
  readonly quorum: number;
  readonly endpoints: readonly Diagnosis[];
  /** What concerns them together. */
  readonly advice: readonly Advice[];
}

/** The meaning of the findings. */
export function diagnose(places: readonly Examined[], isConformance = false): Report {
  const endpoints = places.map((place): Diagnosis => {
    const { url: _, seen, ...named } = place;
    const advice = adviceOn(place);
    const ok = !advice.some(isError);
    const all = rowsOf(place);
    // If something else is wrong, only that is of interest.
    const rows = isConformance ? all : all.filter((row) => ok && row.need in seen && isError(row));
    const { roundTrip, clock } = seen.clock ?? {};
    return { ...named, roundTrip, clock, advice, rows, ok: ok && !rows.some(isError) };
  });
  const quorum = quorumOf(endpoints.length);
  const starts = areUsable(places);
  const ok = starts && endpoints.every((each) => each.ok);
  return { ok, starts, quorum, endpoints, advice: countAdvice(endpoints.length) };
}

/** A URL that cannot be used is an error of the client, and so are two endpoints of one name, even if a quorum is well. */
function areUsable(places: readonly Examined[]): boolean {
  const isUsable = ({ seen: { rest } }: Examined) => rest?.failure?.kind !== "config";
  return places.every(isUsable) && new Set(places.map(({ endpoint }) => endpoint)).size === places.length;
}

const isError = ({ level }: Partial<Consequence>) => level === "error";

/** The report of an endpoint. */
function adviceOn(place: Examined): Advice[] {
  const { seen } = place;
  const failures = Object.entries(seen).filter(([need, { failure }]) => {
    // Of what only some servers have, a refusal says that this one has not got it.
    return failure && ((need in questions && need !== "clock") || !isRefusal(failure));
  });
  // The others follow from the first.
  const failure = failures[0]?.[1].failure;
  const first = failure ? [{ level: "error", ...remedyFor(failure, place) } as const] : dialectAdvice(place);
  return [...first, ...clockAdvice(seen.clock)];
}

/** The dialects, from the one that needs least. */
const dialects: readonly Dialect[] = ["redis", "redis-8.4", "upstash"];

/** The dialect with which the server does most at the least cost. */
function bestDialect({ native, flag }: SeenByNeed): Dialect {
  if (!native?.works) return "redis";
  return flag?.works ? "upstash" : "redis-8.4";
}

function dialectAdvice({ dialect, seen, url }: Examined): Advice[] {
  const best = bestDialect(seen);
  if (!dialect || !seen.eval?.works || dialect === best) return [];
  const isEnough = dialects.indexOf(dialect) < dialects.indexOf(best);
  // Local endpoints emulate these commands, so there it says nothing.
  if (isEnough && isLoopback(url)) return [];
  const gain = dialect === "redis" ? "fewer scripts" : "scripts that do not lock the whole database";
  const [level, message] = isEnough
    ? (["note", `its dialect is ${dialect}; it has what ${best} needs, too, with ${gain}`] as const)
    : (["error", `its dialect is ${dialect}, but it has only what ${best} needs`] as const);
  const fix = `set \`dialect: "${best}"\` for this endpoint in your program; to check that here: --dialect ${best}`;
  return [{ level, code: "DIALECT", message, fix }];
}

/** A longer round trip, or a clock that is further away, in ms, is worth a warning. */
const most = { roundTrip: 300, clock: 1_000 };

function clockAdvice({ roundTrip = 0, clock = 0 }: Seen = {}): Advice[] {
  const away = `${duration(Math.abs(clock))} ${clock > 0 ? "ahead of" : "behind"}`;
  const slow = `a request takes ${duration(roundTrip)}; the default timeout is 1 s, or a third of the ttl if that is less`;
  const wrong = `its clock is ${away} this machine's; locks do not need it, ages, deadlines and signed times of webhooks do`;
  const near = "run your program near the database, or set timeout to three times as long";
  const set = "set the clock of that server by NTP; if all endpoints say this, the clock of this machine";
  return [
    ...(roundTrip > most.roundTrip ? [advice("warning", "SLOW", slow, near)] : []),
    ...(Math.abs(clock) > most.clock ? [advice("warning", "CLOCK", wrong, set)] : []),
  ];
}

const advice = (level: Level, code: string, message: string, fix: string): Advice => ({
  level,
  code,
  message,
  fix,
});

/** The remark about the number of endpoints. */
function countAdvice(count: number): Advice[] {
  const single = "one endpoint: while it is down, no lock can be acquired";
  if (count === 1)
    return [advice("note", "COUNT", single, "three independent databases go on when one is down")];
  const even = `${count} endpoints survive no more failures than ${count - 1}`;
  return count % 2 === 0 ? [advice("warning", "COUNT", even, `use ${count - 1} or ${count + 1}`)] : [];
}

/** The meaning of the observations at an endpoint. Nothing, if nothing could be asked. */
export function rowsOf({ seen, dialect }: Pick<Examined, "seen" | "dialect">): Row[] {
  if (!seen.token?.works) return [];
  return Object.entries(requirements).map(
    ([need, { dialects: needed = [], instead, level, without }]): Row => {
      const answer = answerOf(seen[need]);
      const found = seen[need]?.failure?.message ?? seen[need]?.found;
      if (answer === "yes") return { need, answer, found };
      const isOdd = instead?.[0].test(found ?? "");
      if (isOdd) return { need, answer, found, level: instead![1], without: instead![2] };
      return { need, answer, found, level: dialect && needed.includes(dialect) ? "error" : level, without };
    },
  );
}

function answerOf({ works, failure }: Seen = {}): Answer {
  if (works !== undefined) return works ? "yes" : "no";
  // A refusal says that the server lacks the command. An outage, silence and a missing permission say nothing about it.
  const isMissing =
    failure && isRefusal(failure) && !/NOPERM|executing the script can't|ACL failure/.test(failure.message);
  return isMissing ? "no" : "unknown";
}

/** The report as lines. */
export function reportLines({ endpoints, advice, quorum, starts }: Report, width: number): string[] {
  const titles = endpoints.map(({ number, endpoint, ok, dialect, roundTrip }) => {
    const facts = [dialect && `dialect ${dialect}`, roundTrip !== undefined && `round trip ${roundTrip} ms`];
    return [`${number}`, endpoint, ok ? "ok" : "ERROR", facts.filter(Boolean).join(", ")];
  });
  const heads = blocks(titles, width);
  const adviceLines = ({ level, message, fix }: Advice) => [
    ...layout([[`   ${level}:`, message]], width),
    ...layout([["     fix:", fix]], width),
  ];
  const well = endpoints.filter(({ ok }) => ok).length;
  const can = well >= quorum ? "locks can be acquired" : "no lock can be acquired";
  const outcome = starts
    ? can
    : "your program does not start with these variables, because new Redlock throws";
  const summary = `${well} of ${counted(endpoints.length, "endpoint")} ok (${quorum} needed): ${outcome}`;
  return [
    ...endpoints.flatMap((each, index) => [
      ...heads[index]!,
      ...each.advice.flatMap(adviceLines),
      ...layout(each.rows.flatMap(rowCells), width),
    ]),
    "",
    ...layout([[summary]], width),
    ...advice.flatMap(adviceLines),
  ];
}

function rowCells({ need, answer, found, level, without }: Row): string[][] {
  const consequence = level && `${level}${answer === "unknown" ? ", if not" : ""}: ${without}`;
  const [first = "", ...more] = [found, consequence].filter((text) => text !== undefined);
  return [[`   ${requirements[need]!.label}`, answer, first], ...more.map((text) => ["", "", text])];
}
