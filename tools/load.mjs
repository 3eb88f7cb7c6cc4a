import { rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

/** The path of the project's folder, independent of the working directory. */
export const project = dirname(dirname(fileURLToPath(import.meta.url)));

/**
 * Bundles a TypeScript module of this project for Node.
 *
 * @param {string} entry path relative to the project, for example `local/src/index.ts`
 * @param {import("esbuild").BuildOptions & { name?: string }} [options] more options of esbuild, and the bundle's name if one
 *   process makes several of an entry
 * @returns {Promise<string>} the path of the bundle, which the caller removes
 */
export async function bundleFile(entry, { name = entry, ...options } = {}) {
  // Inside node_modules: packages are resolved from there, and it is never committed.
  const file = `${name.replace(/\W+/g, "-")}-${process.pid}.mjs`;
  const outfile = join(project, "node_modules/.cache/redlock-edge", file);
  await build({
    absWorkingDir: project,
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: "inline",
    logLevel: "silent",
    ...options,
  });
  return outfile;
}

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
  const outfile = await bundleFile(entry, { packages: "external" });
  try {
    return await import(pathToFileURL(outfile).href);
  } finally {
    // Not needed after the import.
    await rm(outfile, { force: true });
  }
}
