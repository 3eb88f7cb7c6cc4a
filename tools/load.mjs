import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** The path of the project's folder, independent of the working directory. */
export const project = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Imports a TypeScript module of this project into Node: bundles it with esbuild, without packages, and imports the
 * bundle.
 *
 * @param {string} entry path relative to the project, for example `local/src/index.ts`
 * @returns {Promise<any>} the module's exports
 *
 * @example
 * const { start } = await load("local/src/index.ts");
 */
export async function load(entry) {
  // Inside node_modules: packages are resolved from there, and it is never committed.
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
    // Not needed after the import.
    await rm(outfile, { force: true });
  }
}
