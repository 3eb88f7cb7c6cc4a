// `node docs/site/api.mjs`: the reference of all packages' exports, from their docstrings, into docs/site/api. Fails for an
// export without one.
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";

/**
 * Writes the reference.
 *
 * @param {string} out the folder
 * @param {Record<string, string>} navigationLinks what its pages lead to, by their texts
 */
export async function writeApi(out, navigationLinks = {}) {
  npmCi("docs/site");
  const { Application } = await import("typedoc");
  const options = join(project, "docs/site/typedoc.json");
  const app = await Application.bootstrapWithPlugins({ options, out, navigationLinks });
  const reflections = await app.convert();
  if (reflections) app.validate(reflections);
  const { logger } = app;
  if (!reflections || logger.hasErrors() || logger.validationWarningCount > 0)
    throw new Error("typedoc has found the above");
  await app.generateOutputs(reflections);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeApi(join(project, "docs/site/api"));
