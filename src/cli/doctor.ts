import { randomUUID } from "node:crypto";
import { systemRuntime } from "../runtime.ts";
import { type Access, accessOf, clientHelp, clientOptions } from "./client.ts";
import {
  type Command,
  type CommandEnvironment,
  defineCommand,
  type ExitCode,
  exitCode,
  exitCodes,
  noArgument,
} from "./command.ts";
import { conformanceLines, judge } from "./conformance-advice.ts";
import { examineConformance } from "./conformance-examine.ts";
import { diagnose, reportLines } from "./doctor-advice.ts";
import { candidateOf, examineAll } from "./doctor-probe.ts";
import { withProgress } from "./progress.ts";
import { counted, jsonLine, printable } from "./text.ts";

/** `redlock-edge doctor`: whether each endpoint can be used, and what to fix. */
export const doctorCommand: Command = defineCommand({
  name: "doctor",
  summary: "checks each endpoint, and says what is wrong and what to fix",
  help: `Usage: redlock-edge doctor [options]

Checks each endpoint: whether it is reachable, the token right and not read-only, two of them the same database, the
dialect right, scripts allowed; how far its clock is from this machine's, and how long a request takes. It writes a few
keys below the prefix, which it deletes or which expire soon. 12 requests per endpoint.

  npx redlock-edge doctor --read-env .dev.vars

  --conformance        ask for all that the library needs of a server, one by one, and look at what is stored: yes, no
                       or unknown, and what happens without it. About 120 requests per endpoint; it writes below
                       <prefix>:doctor, values of up to 1 MB, and deletes them, also after Ctrl-C

${clientHelp}
${exitCodes}`,
  options: { ...clientOptions, conformance: { type: "boolean" } },
  async run({ values, positionals }, environment) {
    noArgument(positionals);
    const access = await accessOf(values, environment);
    if (values.conformance) return checkConformance(access, environment, values.json === true);
    const { endpoints, prefix = "redlock", timeout } = access;
    const candidates = endpoints.map(candidateOf);
    const settings = { prefix, timeout, id: randomUUID() };
    const examinations = await withProgress(
      environment,
      () => `checking ${counted(endpoints.length, "endpoint")}`,
      examineAll(candidates, settings),
    );
    const names = variablesOf(access);
    const named = examinations.map((examination, index) => ({
      ...examination,
      variable: names[index],
    }));
    const report = diagnose(named);
    if (values.json) environment.out(jsonLine({ command: "doctor", ...report }));
    else for (const line of reportLines(report)) environment.out(line && printable(line));
    return report.ok ? exitCode.done : exitCode.failed;
  },
});

async function checkConformance(
  access: Access,
  environment: CommandEnvironment,
  json: boolean,
): Promise<ExitCode> {
  const { endpoints, prefix = "redlock", timeout } = access;
  const { stop, out } = environment;
  let requests = 0;
  const onRequest = () => {
    requests += 1;
  };
  const settings = { prefix, timeout, id: randomUUID(), stop, runtime: systemRuntime, onRequest };
  const work = examineConformance(endpoints, settings);
  const what = counted(endpoints.length, "endpoint");
  const progress = () =>
    stop.aborted ? "deleting what it wrote" : `checking ${what}, ${counted(requests, "request")}`;
  // Not the end of the waiting, but that of the work: it deletes what it wrote first.
  const examined = await withProgress({ ...environment, stop: new AbortController().signal }, progress, work);
  const names = variablesOf(access);
  const results = examined.map((each, index) => ({ ...judge(each), variable: names[index] }));
  const ok = results.every((each) => each.ok);
  if (json) out(jsonLine({ command: "doctor", conformance: true, ok, endpoints: results }));
  else for (const line of conformanceLines(results)) out(line && printable(line));
  return ok ? exitCode.done : exitCode.failed;
}

/** The variable that each URL comes from. Two variables may have the same URL. */
function variablesOf({ endpoints, variables }: Access): (string | undefined)[] {
  const all = Object.keys(variables).filter((name) => /(?:^|_)URL(?:_\d+)?$/.test(name));
  const names = all.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return endpoints.map(({ url }) => {
    const found = names.findIndex((name) => variables[name] === url && isUsed(name, endpoints.length));
    return found < 0 ? undefined : names.splice(found, 1)[0];
  });
}

/** With several endpoints, all of them are numbered. */
function isUsed(name: string, count: number): boolean {
  return count === 1 || /_\d+$/.test(name);
}
