import { randomUUID } from "node:crypto";
import { accessOf, clientHelp, clientOptions } from "./client.ts";
import { type Command, defineCommand, exitCode, exitCodes, noArgument } from "./command.ts";
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

${clientHelp}
${exitCodes}`,
  options: clientOptions,
  async run({ values, positionals }, environment) {
    noArgument(positionals);
    const { endpoints, variables, prefix = "redlock", timeout } = await accessOf(values, environment);
    const candidates = endpoints.map(candidateOf);
    const settings = { prefix, timeout, id: randomUUID() };
    const examinations = await withProgress(
      environment,
      () => `checking ${counted(endpoints.length, "endpoint")}`,
      examineAll(candidates, settings),
    );
    const names = variablesOf(
      endpoints.map(({ url }) => url),
      variables,
    );
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

/** The variable that each URL comes from. Two variables may have the same URL. */
function variablesOf(
  urls: readonly string[],
  variables: Readonly<Record<string, string | undefined>>,
): (string | undefined)[] {
  const all = Object.keys(variables).filter((name) => /(?:^|_)URL(?:_\d+)?$/.test(name));
  const names = all.sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  return urls.map((url) => {
    const found = names.findIndex((name) => variables[name] === url && isUsed(name, urls.length));
    return found < 0 ? undefined : names.splice(found, 1)[0];
  });
}

/** With several endpoints, all of them are numbered. */
function isUsed(name: string, count: number): boolean {
  return count === 1 || /_\d+$/.test(name);
}
