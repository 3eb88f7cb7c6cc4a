// Run by lua.mjs with the file LUA_MUTANTS: imports the test files once for each mutant, all in one worker, because
// starting a worker takes longer than most tests.
import { createHash } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import { textOf } from "../../src/redis/script.ts";
import { project } from "../../tools/load.mjs";
import { luaFiles, scriptOf } from "../../tools/lua.mjs";

const { file, mutants, tests, first, last, log } = JSON.parse(readFileSync(process.env.LUA_MUTANTS, "utf8"));
const sha = (text) => createHash("sha1").update(text).digest("hex");
const read = (name) => readFileSync(join(project, name), "utf8");

/** All scripts as they are when this is the text of the file; others may include it. */
function activate(text = read(file)) {
  const scripts = luaFiles().map((name) => {
    const source = scriptOf(name, (each) => (each === file ? text : read(each)));
    return [name, { source, sha: { redis: sha(source), upstash: sha(textOf(source, "upstash")) } }];
  });
  globalThis.luaScripts = new Map(scripts);
}

activate();
// Number 0 is the script without a mutant.
for (const [index, mutant] of [{}, ...mutants].entries()) {
  if (index < first || index > last) continue;
  describe(`mutant ${index}`, async () => {
    let failed;
    beforeAll(() => activate(mutant.source));
    beforeEach((context) => {
      if (failed) context.skip();
      // For lua.mjs, which waits for news.
      appendFileSync(log, "\n");
      context.onTestFailed(() => {
        failed ??= context.task.name;
      });
    });
    for (const path of tests) await import(/* @vite-ignore */ `${path}?mutant=${index}`);
    afterAll(() => appendFileSync(log, `${JSON.stringify({ index, failed })}\n`));
  });
}
