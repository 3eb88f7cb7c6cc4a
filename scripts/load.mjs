import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** The folder of the project, whatever the current one is. */
export const project = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Imports a TypeScript module of this project into Node, bundled on the fly. Packages stay outside the bundle.
 *
 * @param {string} entry relative to the project, e.g. `src/dev/index.ts`
 * @returns {Promise<any>} the module's exports
 *
 * @example
 * const { startEndpoints } = await load("src/dev/index.ts");
 */
export async function load(entry) {
  // Inside node_modules: from there the packages are found, and nothing of it is ever committed.
  const directory = join(project, "node_modules", ".cache", "redlock-edge");
  const outfile = join(directory, `${entry.replace(/\W/g, "-")}-${process.pid}.mjs`);
  await mkdir(directory, { recursive: true });
  try {
    await build({
      absWorkingDir: project,
      entryPoints: [entry],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20",
      packages: "external",
      sourcemap: "inline",
      logLevel: "silent",
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    // Once imported it is not needed any more.
    await rm(outfile, { force: true });
  }
}
