// `node docs/site/api.mjs`: the reference of all packages' exports, from their docstrings, as Markdown in docs/site/api: a page
// for each module. Fails for an export without a docstring.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";

/**
 * Writes the reference.
 *
 * @param {string} out the folder
 */
export async function writeApi(out) {
  npmCi("docs/site");
  const { Application } = await import("typedoc");
  const options = join(project, "docs/site/typedoc.json");
  const app = await Application.bootstrapWithPlugins({ options, out });
  const reflections = await app.convert();
  if (reflections) app.validate(reflections);
  const { logger } = app;
  if (!reflections || logger.hasErrors() || logger.validationWarningCount > 0)
    throw new Error("typedoc has found the above");
  await app.generateOutputs(reflections);
  const modules = apiModules(out);
  const rows = modules.map(({ name, file, sentence }) => `| [\`${name}\`](${file}) | ${sentence} |`);
  const text = [...indexText, "| import from | contents |", "| --- | --- |", ...rows, ""].join("\n");
  writeFileSync(join(out, "index.md"), text);
}

const indexText = [
  "# API reference",
  "",
  "You find every export here, with its options and errors. If you have a task, begin with its [guide](../contents.md).",
  "",
];

/**
 * The modules of a written reference, the most used first.
 *
 * @param {string} folder
 * @returns {{ name: string, file: string, sentence: string }[]}
 */
export function apiModules(folder) {
  const files = readdirSync(folder).filter((file) => file.endsWith(".md") && file !== "index.md");
  const modules = files.map((file) => {
    const [, name, sentence] = /^# (.+)\n\n(.+)/.exec(readFileSync(join(folder, file), "utf8"));
    return { name, file, sentence };
  });
  const order = ({ name }) => `${/^redlock-edge(\/|$)/.test(name) ? 0 : 1}${name}`;
  return modules.sort((one, other) => (order(one) < order(other) ? -1 : 1));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeApi(join(project, "docs/site/api"));
