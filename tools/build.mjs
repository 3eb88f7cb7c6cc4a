// `npm run build`: builds all packages, each into its dist/. With the name of one, only that and what its types refer to.
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { build } from "esbuild";
import { project } from "./load.mjs";
import { writeModules } from "./lua.mjs";
import { withWholeUrls } from "./whole-links.mjs";

process.chdir(project);
writeModules();

/** The peer of the local endpoints: their classes of errors must be the same as the program's. */
const redlockEdgeOutside = {
  name: "redlock-edge",
  setup: ({ onResolve }) => onResolve({ filter: /^redlock-edge$/ }, ({ path }) => ({ path, external: true })),
};

const only = process.argv[2];
// The types of the others are compiled against its types.
buildFiles("tsconfig.build.json", "dist");
if (!only || only === "redlock-edge-server")
  buildFiles("lock-server/tsconfig.build.json", "lock-server/dist");
if (!only || only === "redis-rest-local") await buildRedisRestLocal();

/** File by file, with the comments: users read it in node_modules, and step through it. */
function buildFiles(config, target) {
  rmSync(target, { recursive: true, force: true });
  compile(config, target);
}

/** In chunks, with maps, because it contains the libraries that it uses. */
async function buildRedisRestLocal() {
  rmSync("local/dist", { recursive: true, force: true });
  const options = {
    absWorkingDir: project,
    bundle: true,
    format: "esm",
    target: "es2022",
    sourcemap: true,
    metafile: true,
  };
  const modules = await build({
    ...options,
    entryPoints: ["index", "memory/index", "cli/main"].map((name) => `local/src/${name}.ts`),
    outbase: "local/src",
    outdir: "local/dist",
    splitting: true,
    platform: "neutral",
    external: ["node:*"],
    plugins: [redlockEdgeOutside],
  });
  // The script of its page: one file, which the command reads when a browser asks for it.
  const page = await build({
    ...options,
    entryPoints: ["local/src/page/browser/main.ts"],
    outfile: "local/dist/cli/page.js",
  });
  leaveOutLibraries("local/dist");
  const bundles = [modules, page].flatMap(({ metafile }) => Object.values(metafile.outputs));
  writeFileSync("local/dist/LICENSES.txt", licensesIn(bundles));
  compile("local/tsconfig.build.json", "local/dist");
}

/**
 * Runs the compiler, and adapts the types: they import .ts files, and name a library that no year's has. Where there is a
 * repository, what names a page of the docs has its address.
 */
function compile(config, target) {
  execFileSync(process.execPath, ["node_modules/@typescript/native/bin/tsc", "-p", config], {
    stdio: "inherit",
  });
  for (const file of filesOf(target, ".d.ts")) {
    const types = withWholeUrls(readFileSync(file, "utf8"));
    const library = /asyncDispos/i.test(types) ? '/// <reference lib="esnext.disposable" />\n' : "";
    writeFileSync(file, library + types.replaceAll(/(["'])(\.{1,2}\/[^"']+)\.ts\1/g, "$1$2.js$1"));
  }
  for (const file of filesOf(target, ".js")) writeFileSync(file, withWholeUrls(readFileSync(file, "utf8")));
  const command = join(target, "cli/main.js");
  if (existsSync(command)) chmodSync(command, 0o755);
}

/** The maps have this package's sources, but not those of the libraries in the bundles. */
function leaveOutLibraries(target) {
  for (const file of filesOf(target, ".map")) {
    const map = JSON.parse(readFileSync(file, "utf8"));
    const sourcesContent = map.sourcesContent.map((text, index) =>
      map.sources[index].includes("node_modules/") ? null : text,
    );
    writeFileSync(file, JSON.stringify({ ...map, sourcesContent }));
  }
}

/** The licences of the packages that have code in the bundles, as their authors ask. */
function licensesIn(bundles) {
  const sources = bundles.flatMap(({ inputs }) =>
    Object.keys(inputs).filter((path) => inputs[path].bytesInOutput > 0),
  );
  const folders = sources.flatMap((path) => /^.*node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []);
  return [...new Set(folders)]
    .sort()
    .map(licenseOf)
    .join(`\n${"-".repeat(80)}\n\n`);
}

function licenseOf(folder) {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^(licen[cs]e|copying)\b/i.test(entry));
  if (!file) throw new Error(`${name} is in the bundles, but its licence is not in ${folder}`);
  return `${name} ${version}\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
}

function filesOf(folder, ending) {
  return readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name));
}
