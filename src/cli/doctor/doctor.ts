import { randomUUID } from "node:crypto";
import { quorumOf } from "../../quorum/tally.ts";
import { type Call, clientOf, failureOf, isRefusal, type Place } from "../access.ts";
import { exitCode, type Outcome } from "../environment.ts";
import { counted, layout, type Text } from "../text.ts";
import { Lack, Probe, type Settings } from "./probe.ts";
import { type Question, questionsOf } from "./questions.ts";
import { type Advice, remedyFor, worded } from "./remedies.ts";

/**
 * `redlock-edge doctor`: whether each endpoint can be used, and what to fix; or, with `--conformance`, everything that a server
 * can do.
 */
export async function doctor(call: Call): Promise<Outcome> {
  const { prefix, timeout, conformance = false } = call.values;
  const settings = { prefix, timeout, id: randomUUID() };
  const questions = questionsOf(conformance);
  const examined = call.access.places.map((place) => examine(place, settings, questions));
  const found = await Promise.all(examined);
  const endpoints = found.map(({ rows, ...each }) => ({ ...each, rows: conformance ? rows : [] }));
  const quorum = quorumOf(endpoints.length);
  const well = endpoints.filter((each) => each.ok).length;
  const starts = canStart(call);
  const ok = starts && well === endpoints.length;
  const can = well >= quorum ? "locks can be acquired" : "no lock can be acquired";
  const outcome = starts ? can : "your program does not start, because new Redlock throws";
  return {
    code: !starts ? exitCode.usage : ok ? exitCode.done : exitCode.failed,
    fields: { ok, starts, quorum, endpoints },
    text: [
      ...endpointsText(endpoints),
      "",
      `${well} of ${counted(endpoints.length, "endpoint")} ok (${quorum} needed): ${outcome}`,
    ],
  };
}

/** The answer to one question. */
export interface Row {
  readonly code: string;
  readonly label: string;
  readonly answer: "yes" | Lack["answer"];
  /** What it has instead: an error, a policy. */
  readonly found?: string;
}

export type Diagnosis = Awaited<ReturnType<typeof examine>>;

/** Examines an endpoint, one question after another. `ok`: locks can use it. */
export async function examine(
  place: Place,
  settings: Settings,
  questions: Readonly<Record<string, Question>>,
) {
  const { variable } = place;
  const rows: Row[] = [];
  const advice: Advice[] = [];
  const probe = new Probe(place, settings);
  for (const [code, { label, ask, level = "error", fix, isNeeded }] of Object.entries(questions)) {
    try {
      await ask(probe);
      rows.push({ code, label, answer: "yes" });
    } catch (error) {
      const lack = fix && lackIn(error);
      if (!lack) {
        advice.push(remedyFor(failureOf(error), variable));
        break;
      }
      const { answer, message: found } = lack;
      rows.push({ code, label, answer, found });
      advice.push({ level, code, message: `${label}: ${answer}, ${found}`, fix: worded(fix, variable) });
      if (isNeeded) break;
    }
  }
  const ok = advice.every((each) => each.level !== "error");
  return { ...probe.facts(), rows, advice, ok };
}

/** What an error says of the server. Undefined: nothing, for example an outage. */
function lackIn(error: unknown): Lack | undefined {
  if (error instanceof Lack) return error;
  const failure = failureOf(error);
  if (!isRefusal(failure)) return undefined;
  // Another user may be allowed to.
  const isRight = /NOPERM|executing the script can't|ACL failure/.test(failure.message);
  return new Lack(failure.message, isRight ? "unknown" : "no");
}

/** Whether `new Redlock` takes the endpoints. It throws if a URL cannot be used, even if a quorum is well. */
function canStart(call: Call): boolean {
  try {
    clientOf(call);
    return true;
  } catch {
    return false;
  }
}

/** What is known of each endpoint, below its title. */
function endpointsText(endpoints: readonly Diagnosis[]): Text {
  const heads = endpoints.map(({ number, endpoint, ok, dialect, roundTrip }) => {
    const facts = [dialect && `dialect ${dialect}`, roundTrip && `round trip ${roundTrip} ms`];
    return [`${number}`, endpoint, ok ? "ok" : "ERROR", facts.filter(Boolean).join(", ")];
  });
  const titles = layout(heads);
  return endpoints.flatMap(({ rows, advice }, index) => [
    titles[index]!,
    ...rows.map(({ label, answer, found = "" }) => [`   ${label}`, answer, found]),
    ...advice.flatMap(({ level, message, fix }) => [
      [`   ${level}:`, message],
      ["     fix:", fix],
    ]),
  ]);
}
