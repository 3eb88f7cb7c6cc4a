// Prints the repository's weight: code lines by folder, without comments and blank lines. `node tools/weight.mjs [folder]` prints the
// files of a folder. Every budget of lines is counted by this.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";

const code = /\.(ts|tsx|js|jsx|mjs|cjs|css|html|vue|svelte|lua|qnt)$/;

/** Lines with code, without those of comments and without blank ones. A script counts as Lua, not as its generated copy. */
function linesOf(path) {
  let isComment = false;
  let count = 0;
  for (const raw of readFileSync(path, "utf8").split("\n")) {
    const line = raw.trim();
    if (isComment) {
      isComment = !line.includes("*/");
    } else if (line.startsWith("/*")) {
      isComment = !line.includes("*/");
    } else if (line && !/^(\/\/|--)/.test(line)) count += 1;
  }
  return count;
}

const [folder = ""] = process.argv.slice(2);
const files = execFileSync("git", ["ls-files", "--", folder || "."], { encoding: "utf8" }).split("\n");
const lines = new Map();
for (const path of files.filter((each) => code.test(each) && !each.endsWith(".lua.ts"))) {
  const parts = path.split("/");
  const name = folder ? path : parts.slice(0, parts[0] === "src" && parts.length > 2 ? 2 : 1).join("/");
  lines.set(name, (lines.get(name) ?? 0) + linesOf(path));
}
const table = [...lines].sort(([, a], [, b]) => b - a);
for (const [name, count] of table) console.log(`${String(count).padStart(7)}  ${name}`);
console.log(`${String(table.reduce((sum, [, count]) => sum + count, 0)).padStart(7)}  in all`);
