// Builds the package into dist/: JavaScript by esbuild, with one file per export and shared chunks, and types by tsc.
import { execFileSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

rmSync("dist", { recursive: true, force: true });

const shared = {
  bundle: true,
  format: "esm",
  target: "es2022",
  splitting: true,
  outbase: "src",
  outdir: "dist",
};

// For every runtime. The definitions let fengari, the Lua machine of `./testing`, load without Node and DOM.
await build({
  ...shared,
  platform: "neutral",
  mainFields: ["main"],
  external: ["@opentelemetry/api"],
  entryPoints: [
    "index",
    "idempotency/index",
    "http/index",
    "hono/index",
    "otel/index",
    "webhooks/index",
    "sync/index",
    "testing/index",
  ].map((name) => `src/${name}.ts`),
  define: { "process.env.FENGARICONF": "undefined", process: "undefined", window: "globalThis" },
});

// For Node only. Bundled CommonJS modules call `require`, which ES modules do not have.
await build({
  ...shared,
  platform: "node",
  minify: true,
  keepNames: true,
  target: "node20",
  chunkNames: "dev/[name]-[hash]",
  entryPoints: ["src/dev/index.ts", "src/dev/cli.ts"],
  banner: {
    js: 'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);',
  },
});
chmodSync("dist/dev/cli.js", 0o755);

execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"], {
  stdio: "inherit",
});
// The sources import .ts files; published types must import .js files.
for (const name of readdirSync("dist", { recursive: true })) {
  if (!name.endsWith(".d.ts")) continue;
  const types = readFileSync(`dist/${name}`, "utf8");
  writeFileSync(`dist/${name}`, types.replaceAll(/(["'])(\.{1,2}\/[^"']+)\.ts\1/g, "$1$2.js$1"));
}
