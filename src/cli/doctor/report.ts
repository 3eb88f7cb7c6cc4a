import type { Dialect } from "../../index.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { type Failure, isRefusal } from "../access.ts";
import { counted, duration, layout, type Text } from "../text.ts";
import { type Level, questions, requirements } from "./questions.ts";
import { remedyFor } from "./remedies.ts";
import type { Examined, Seen } from "./session.ts";

// What doctor says of all that it has seen. No I/O.

/** Something that doctor has to say. */
interface Advice {
  readonly level: Level;
  readonly code: string;
  readonly message: string;
  readonly fix: string;
}

/** The finding of one requirement. */
export interface Row {
  readonly need: string;
  /** `unknown`: not asked, not answered, or not allowed to this token. */
  readonly answer: "yes" | "no" | "unknown";
  /** The observation: the error, a size, a policy. */
  readonly found?: string | undefined;
}

export type Diagnosis = ReturnType<typeof diagnosisOf>;
export type Report = ReturnType<typeof diagnose>;

/**
 * The meaning of the findings. `ok`: every endpoint is well. `starts`: `new Redlock` takes them. `advice`: what concerns them
 * together.
 */
export function diagnose(places: readonly Examined[], isConformance = false) {
  const endpoints = places.map((place) => diagnosisOf(place, isConformance));
  const quorum = quorumOf(endpoints.length);
  // A URL that cannot be used is an error of the client, and so are two endpoints of one name, even if a quorum is well.
  const isUsable = places.every(({ seen: { rest } }) => rest?.failure?.kind !== "config");
  const starts = isUsable && new Set(places.map(({ name }) => name)).size === places.length;
  const ok = starts && endpoints.every((each) => each.ok);
  return { ok, starts, quorum, endpoints, advice: countAdvice(endpoints.length) };
}

/** `ok`: locks can use it. `rows`: of all requirements. Nothing without `--conformance`, or if nothing could be asked. */
function diagnosisOf(examined: Examined, isConformance: boolean) {
  const { place, name: endpoint, dialect, seen } = examined;
  const { number, variable } = place;
  const { roundTrip, clock } = seen.clock ?? {};
  const all = Object.keys(requirements).map((need): Row => {
    const found = seen[need]?.failure?.message ?? seen[need]?.found;
    return { need, answer: answerOf(seen[need]), found };
  });
  const lacks = all.filter(({ need, answer }) => seen[need] && answer !== "yes");
  const failure = failureIn(examined);
  // The others follow from a failure.
  const own: Advice[] = failure
    ? [{ level: "error", ...remedyFor(failure, variable) }]
    : [...dialectAdvice(examined), ...lacks.flatMap(lackAdvice)];
  const advice = [...own, ...clockAdvice(seen.clock)];
  const ok = advice.every(({ level }) => level !== "error");
  const rows = isConformance && seen.token?.works ? all : [];
  return { endpoint, number, variable, dialect, roundTrip, clock, advice, rows, ok };
}

/** The first failure. A server may refuse what only some have: it has not got it. */
function failureIn({ seen }: Examined): Failure | undefined {
  for (const [need, { failure }] of Object.entries(seen)) {
    const isDecisive = need in questions && need !== "clock";
    if (failure && (isDecisive || !isRefusal(failure))) return failure;
  }
  return undefined;
}

/** What to do without something that the library needs. */
function lackAdvice({ need, answer, found = "" }: Row): Advice[] {
  const { instead, ...usual } = requirements[need]!;
  const { level, fix } = instead?.found.test(found) ? instead : usual;
  const message = `${usual.label}: ${answer === "unknown" ? "not known, " : ""}${found}`;
  return level && fix ? [{ level, code: need.toUpperCase(), message, fix }] : [];
}

/** The dialects, from the one that needs least. */
const dialects: readonly Dialect[] = ["redis", "redis-8.4", "upstash"];

function dialectAdvice({ dialect, seen, place: { url } }: Examined): Advice[] {
  // With it the server does most at the least cost.
  const best = !seen.native?.works ? "redis" : seen.flag?.works ? "upstash" : "redis-8.4";
  if (!dialect || !seen.eval?.works || dialect === best) return [];
  const isEnough = dialects.indexOf(dialect) < dialects.indexOf(best);
  // Local endpoints emulate these commands, so there it says nothing.
  if (isEnough && isLoopback(url)) return [];
  const has = isEnough ? `and has what ${best} needs, too` : `but has only what ${best} needs`;
  const message = `it is used with the dialect ${dialect}, ${has}`;
  const fix = `set \`dialect: "${best}"\` for this endpoint in your program; to check that here: --dialect ${best}`;
  return [{ level: isEnough ? "note" : "error", code: "DIALECT", message, fix }];
}

/** Whether an endpoint is on this machine, as local ones are. */
function isLoopback(url: string): boolean {
  return URL.canParse(url) && /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname);
}

/** A longer round trip, or a clock that is further away, in ms, is worth a warning. */
const most = { roundTrip: 300, clock: 1_000 };

function clockAdvice({ roundTrip = 0, clock = 0 }: Seen = {}): Advice[] {
  const away = `${duration(Math.abs(clock))} ${clock > 0 ? "ahead of" : "behind"}`;
  const slow: Advice = {
    level: "warning",
    code: "SLOW",
    message: `a request takes ${duration(roundTrip)}; the default timeout is 1 s, or a third of the ttl if that is less`,
    fix: "run your program near the database, or set timeout to three times as long",
  };
  const wrong: Advice = {
    level: "warning",
    code: "CLOCK",
    message: `its clock is ${away} this machine's; locks do not need it, ages, deadlines and signed times of webhooks do`,
    fix: "set the clock of that server by NTP; if all endpoints say this, the clock of this machine",
  };
  return [...(roundTrip > most.roundTrip ? [slow] : []), ...(Math.abs(clock) > most.clock ? [wrong] : [])];
}

/** The remark about the number of endpoints. */
function countAdvice(count: number): Advice[] {
  const code = "COUNT";
  if (count === 1) {
    const message = "one endpoint: while it is down, no lock can be acquired";
    return [{ level: "note", code, message, fix: "three independent databases go on when one is down" }];
  }
  const message = `${count} endpoints survive no more failures than ${count - 1}`;
  return count % 2 === 0
    ? [{ level: "warning", code, message, fix: `use ${count - 1} or ${count + 1}` }]
    : [];
}

function answerOf({ works, failure }: Seen = {}): Row["answer"] {
  if (works !== undefined) return works ? "yes" : "no";
  // A refusal says that the server lacks the command. An outage, silence and a missing permission say nothing about it.
  const isMissing =
    failure && isRefusal(failure) && !/NOPERM|executing the script can't|ACL failure/.test(failure.message);
  return isMissing ? "no" : "unknown";
}

/** The report for people. */
export function reportText({ endpoints, advice, quorum, starts }: Report): Text {
  const heads = endpoints.map(({ number, endpoint, ok, dialect, roundTrip }) => {
    const facts = [dialect && `dialect ${dialect}`, roundTrip !== undefined && `round trip ${roundTrip} ms`];
    return [`${number}`, endpoint, ok ? "ok" : "ERROR", facts.filter(Boolean).join(", ")];
  });
  const titles = layout(heads);
  const textOf = ({ level, message, fix }: Advice) => [
    [`   ${level}:`, message],
    ["     fix:", fix],
  ];
  const well = endpoints.filter(({ ok }) => ok).length;
  const can = well >= quorum ? "locks can be acquired" : "no lock can be acquired";
  const outcome = starts
    ? can
    : "your program does not start with these variables, because new Redlock throws";
  return [
    ...endpoints.flatMap((each, index) => [
      titles[index]!,
      ...each.rows.map(({ need, answer, found = "" }) => [`   ${requirements[need]!.label}`, answer, found]),
      ...each.advice.flatMap(textOf),
    ]),
    "",
    `${well} of ${counted(endpoints.length, "endpoint")} ok (${quorum} needed): ${outcome}`,
    ...advice.flatMap(textOf),
  ];
}
