import { randomUUID } from "node:crypto";
import { httpEndpoint } from "../../index.ts";
import { systemRuntime } from "../../runtime.ts";
import { type Access, accessOf } from "../access.ts";
import { type Environment, exitCode, type Outcome } from "../environment.ts";
import type { Values } from "../options.ts";
import { diagnose, reportLines } from "./report.ts";
import { questionsOf } from "./requirements.ts";
import { examine, Session } from "./session.ts";

/** `redlock-edge doctor`: whether each endpoint can be used, and what to fix; or all that a server has. */
export async function doctor(_: string, values: Values, environment: Environment): Promise<Outcome> {
  const { stop } = environment;
  const { prefix, timeout, conformance } = values;
  const access = await accessOf(values, environment);
  const settings = { prefix, timeout, id: randomUUID(), stop, runtime: systemRuntime };
  const names = variablesOf(access);
  const sessions = access.endpoints.map((options, index) => {
    const place = { number: index + 1, url: options.url, variable: names[index] };
    return new Session(() => httpEndpoint(options), settings, place);
  });
  const examined = await examine(sessions, questionsOf(conformance));
  const report = diagnose(examined, conformance);
  return {
    code: report.ok ? exitCode.done : exitCode.failed,
    fields: report,
    lines: (width) => reportLines(report, width),
  };
}

/** The variables that the URLs come from, in the order of the endpoints. */
function variablesOf({ variables }: Access): string[] {
  const numbered = Object.keys(variables).filter((name) => /^UPSTASH_REDIS_REST_URL_\d+$/.test(name));
  if (numbered.length > 0) return numbered.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return [variables.UPSTASH_REDIS_REST_URL ? "UPSTASH_REDIS_REST_URL" : "KV_REST_API_URL"];
}
