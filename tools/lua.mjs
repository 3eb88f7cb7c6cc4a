// `node tools/lua.mjs`: writes `x.lua.ts` beside every src/**/x.lua: the script without its comments, and its hashes. `npm ci`,
// the tests and the build do it, too.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, posix, relative } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { project } from "./load.mjs";

const include = /--- @include "(.*)"/;
const flag = JSON.parse(/upstashFlag = (".*");/.exec(readSource("src/redis/script.ts"))[1]);

/** The paths of all Lua scripts, relative to the project. */
export function luaFiles() {
  const names = readdirSync(join(project, "src"), { recursive: true }).map((name) => `src/${name}`);
  return names.map((name) => name.replaceAll("\\", "/")).filter((name) => name.endsWith(".lua"));
}

/**
 * The text of a Lua file that is sent: one line for each, without comments and indentation.
 *
 * @param {string} file
 * @param {(file: string) => string} [read] returns a file's text
 */
export function scriptOf(file, read = readSource) {
  return bodyOf(file, read).replace(include, (_, path) => scriptOf(posix.join(dirname(file), path), read));
}

/** The same, but what it includes is left as it is. A string may contain two hyphens. */
function bodyOf(file, read) {
  const isKept = (text) => text.startsWith('"') || include.test(text);
  const code = read(file).replace(/"[^"\n]*"|--.*/g, (text) => (isKept(text) ? text : ""));
  const lines = code.split("\n").map((line) => line.trim());
  return lines.filter(Boolean).join("\n");
}

/** The module of a Lua file: see {@link scriptOf}. */
export function moduleOf(file, read = readSource) {
  const script = scriptOf(file, read);
  const sha = (text) => createHash("sha1").update(text).digest("hex");
  const from = (path) =>
    relative(dirname(file), path)
      .replaceAll("\\", "/")
      .replace(/^(?!\.)/, "./");
  const imports = [`import type { Script } from "${from("src/redis/script.ts")}";\n`];
  const escaped = bodyOf(file, read).replace(/[\\`]|\$\{/g, "\\$&");
  const source = escaped.replace(include, (_, path) => {
    imports.unshift(`import { ${nameOf(path)} } from "${path}.ts";\n`);
    return `\${${nameOf(path)}.source}`;
  });
  return `// Generated from ${basename(file)} by \`node tools/lua.mjs\`. Change it there.
${imports.join("")}
export const ${nameOf(file)}: Script = {
  source: \`${source}\`,
  sha: {
    redis: "${sha(script)}",
    upstash: "${sha(flag + script)}",
  },
};
`;
}

/** `freeSynchronizerScript` for free-synchronizer.lua. */
function nameOf(file) {
  return `${basename(file, ".lua").replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase())}Script`;
}

function readSource(file) {
  return readFileSync(join(project, file), "utf8");
}

/** Writes the modules that are not up to date. What they contain is no part of the repository. */
export function writeModules() {
  for (const file of luaFiles()) {
    const target = `${file}.ts`;
    const module = moduleOf(file);
    if (existsSync(join(project, target)) && module === readSource(target)) continue;
    writeFileSync(join(project, target), module);
    const [hash] = module.match(/\b[0-9a-f]{40}\b/);
    console.log(
      `${target}; change lock-server/src/twins/${basename(file, ".lua")}-twin.ts likewise: ${hash}`,
    );
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeModules();
