// Builds the package into dist/: JavaScript by esbuild, with one file per export and shared chunks, and types by tsc.
import { execFileSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { everyRuntime } from "./browser-script.mjs";

rmSync("dist", { recursive: true, force: true });

const folders = ["idempotency", "http", "hono", "otel", "webhooks", "inbox", "sync", "testing", "dev"];
await build({
  entryPoints: ["src/index.ts", ...folders.map((name) => `src/${name}/index.ts`), "src/dev/cli.ts"],
  outbase: "src",
  outdir: "dist",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  // Not minified, and with maps: users read it in node_modules, and step through it.
  sourcemap: true,
  // For every runtime; only ./dev imports Node's modules.
  ...everyRuntime,
  external: ["node:*", "@opentelemetry/api"],
});
// The script of the page of `redlock-edge dev`: one file, which the command reads when a browser asks for it.
await build({
  entryPoints: ["src/dev/page/browser/main.ts"],
  outfile: "dist/dev/page.js",
  bundle: true,
  format: "esm",
  target: "es2022",
  sourcemap: true,
});
chmodSync("dist/dev/cli.js", 0o755);

// The maps have this package's sources, but not those of the libraries in the bundles.
for (const name of readdirSync("dist", { recursive: true })) {
  if (!name.endsWith(".map")) continue;
  const map = JSON.parse(readFileSync(`dist/${name}`, "utf8"));
  const sourcesContent = map.sourcesContent.map((text, index) =>
    map.sources[index].includes("node_modules/") ? null : text,
  );
  writeFileSync(`dist/${name}`, JSON.stringify({ ...map, sourcesContent }));
}

execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
  stdio: "inherit",
});
// The sources import .ts files; published types must import .js files. And they name a library that no year's has.
for (const name of readdirSync("dist", { recursive: true })) {
  if (!name.endsWith(".d.ts")) continue;
  const types = readFileSync(`dist/${name}`, "utf8");
  const library = /asyncDispos/i.test(types) ? '/// <reference lib="esnext.disposable" />\n' : "";
  writeFileSync(`dist/${name}`, library + types.replaceAll(/(["'])(\.{1,2}\/[^"']+)\.ts\1/g, "$1$2.js$1"));
}
