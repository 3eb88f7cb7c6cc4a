import { randomUUID } from "node:crypto";
import { systemRuntime } from "../../runtime/runtime.ts";
import type { Call } from "../access.ts";
import { exitCode, type Outcome } from "../environment.ts";
import { questionsOf } from "./questions.ts";
import { diagnose, reportText } from "./report.ts";
import { examine, Session } from "./session.ts";

/**
 * `redlock-edge doctor`: whether each endpoint can be used, and what to fix; or, with `--conformance`, everything that a server
 * can do.
 */
export async function doctor({ access, values }: Call): Promise<Outcome> {
  const { prefix, timeout, conformance = false } = values;
  const settings = { prefix, timeout, id: randomUUID(), runtime: systemRuntime };
  const sessions = access.places.map((place) => new Session(place, settings));
  const examined = await examine(sessions, questionsOf(conformance));
  const report = diagnose(examined, conformance);
  return {
    code: !report.starts ? exitCode.usage : report.ok ? exitCode.done : exitCode.failed,
    fields: report,
    text: reportText(report),
  };
}
