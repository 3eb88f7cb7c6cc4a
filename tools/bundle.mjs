import { build } from "esbuild";
import { project } from "./load.mjs";

/**
 * A script for a page or a Worker: one text, with all that it imports.
 *
 * @param {string} entry path relative to the project, for example `worker/index.ts`
 * @param {import("esbuild").BuildOptions} [more]
 * @returns {Promise<string>}
 */
export async function bundle(entry, more) {
  const { outputFiles } = await build({
    absWorkingDir: project,
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    target: "es2022",
    ...more,
    write: false,
  });
  return outputFiles[0].text;
}

/** The script of the page of `redis-rest-local`, from the sources. The package has it as a file: build.mjs. */
export const devPageScript = () => bundle("local/src/page/browser/main.ts");
