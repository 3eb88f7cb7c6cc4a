import { join } from "node:path";
import { project } from "../../../tools/load.mjs";
import { npmCi } from "../../../tools/npm-ci.mjs";

/**
 * The command of a runtime. The first call installs all of them: `npm ci` need not bring 700 MB.
 *
 * @param {string} name as package.json of this folder has it, such as `node-24` or `bun`
 */
export function pinnedRuntime(name) {
  const folder = "evidence/runtimes/matrix";
  npmCi(folder);
  const modules = join(project, folder, "node_modules");
  // npm links only one of several programs with the name `node`.
  return name.startsWith("node-") ? join(modules, name, "bin/node") : join(modules, ".bin", name);
}
