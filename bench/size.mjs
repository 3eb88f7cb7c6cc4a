// What each export weighs in a user's bundle: everything it exports, bundled and minified, gzip level 9.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const { name, exports } = JSON.parse(readFileSync("package.json", "utf8"));

/** The bytes of one export; without those of the core where it is `beside` it. */
export async function sizeOf(entry, beside) {
  const external = beside ? [] : undefined;
  const result = await build({
    stdin: { contents: `export * from ${JSON.stringify(`./${entry}`)}`, resolveDir: "." },
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: "es2022",
    platform: entry.includes("/dev/") ? "node" : "browser",
    external,
    logLevel: "error",
  });
  const [file] = result.outputFiles;
  return { minified: file.contents.length, gzip: gzipSync(file.contents, { level: 9 }).length };
}

export async function print() {
  console.log("\nSize of each export, bundled alone and minified (goal for the core: 6 144 bytes gzip)\n");
  for (const [path, target] of Object.entries(exports)) {
    if (!target.default) continue;
    const { minified, gzip } = await sizeOf(target.default.replace("./", ""));
    const label = path === "." ? name : name + path.slice(1);
    console.log(`${label.padEnd(26)}${String(minified).padStart(9)} bytes${String(gzip).padStart(9)} gzip`);
  }
}
