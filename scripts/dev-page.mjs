import { join } from "node:path";
import { build } from "esbuild";
import { project } from "./load.mjs";

/** The script of the page of `redlock-edge dev`, from the sources. The package has it as a file: build.mjs. */
export async function devPageScript() {
  const { outputFiles } = await build({
    entryPoints: [join(project, "src/dev/page/browser/main.ts")],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
  });
  return outputFiles[0].text;
}
