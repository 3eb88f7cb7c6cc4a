import { join } from "node:path";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";

/** The node_modules of test/on-demand: installed when the first test needs them. */
export function onDemand(): string {
  npmCi("test/on-demand");
  return join(project, "test/on-demand/node_modules");
}
