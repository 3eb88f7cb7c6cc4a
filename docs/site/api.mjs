// `node docs/site/api.mjs`: the reference of all packages' exports, from their docstrings, into docs/site/api. Fails for an
// export without one.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";

npmCi("docs/site");
const typedoc = join(project, "docs/site/node_modules/typedoc/bin/typedoc");
execFileSync(process.execPath, [typedoc, "--options", "docs/site/typedoc.json"], {
  cwd: project,
  stdio: "inherit",
});
