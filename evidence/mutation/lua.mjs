// `node evidence/mutation.mjs --lua [part of a path]`: mutants of the Lua scripts, which are strings to StrykerJS. Each is
// played on a redis-server beside the twin of its script, as evidence/twins does: a difference kills it.

import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { load, project } from "../../tools/load.mjs";
import { luaFiles, scriptOf } from "../../tools/lua.mjs";
import { mutantsOf } from "./lua-mutants.mjs";
import { changesNothing, staleLines } from "./lua-same.mjs";

/** Random states of 60 steps after which a mutant counts as survived. */
const mostRuns = 200;

/** ms after which a mutant counts as an endless loop. */
const longest = 5_000;

const read = (file) => readFileSync(join(project, file), "utf8");

/** A redis-server, which a mutant may block for ever. */
class Judge {
  #modules;
  #program;
  #server;
  #redis;
  #directory;

  static async open() {
    const judge = new Judge();
    // One bundle: the classes of errors must be the same.
    judge.#modules = await load("evidence/mutation/judge.ts");
    judge.#program = await judge.#modules.findRedisServer();
    if (!judge.#program) throw new Error("redis-server is not on PATH: install it");
    judge.#directory = await mkdtemp(join(tmpdir(), "lua-mutants-"));
    await judge.#start();
    return judge;
  }

  async #start() {
    this.#server = await this.#modules.startRedis(this.#program, this.#directory);
    this.#redis = await this.#modules.SteppedRedis.open(this.#server.url);
  }

  /** Why this text is not what the script's twin does; undefined where no difference is seen. */
  async difference(random, text) {
    let timer;
    const tooLong = new Promise((resolve) => {
      timer = setTimeout(resolve, longest, "it hangs");
    });
    for (let seed = 0; seed < mostRuns; seed += 1) {
      const played = this.#modules.playScript(this.#redis, random, seed, { text });
      const end = await Promise.race([played.then(({ difference }) => difference && "it differs"), tooLong]);
      timer.refresh();
      if (end === "it hangs") {
        played.catch(() => undefined);
        await this.#server.kill();
        await this.#start();
      }
      if (end) {
        clearTimeout(timer);
        return end;
      }
    }
    clearTimeout(timer);
    return undefined;
  }

  /** The random calls of the scripts whose text, with what it includes, has this file in it; with how their texts are made. */
  playersOf(file) {
    return luaFiles().flatMap((path) => {
      const textOf = (text) => scriptOf(path, (each) => (each === file ? text : read(each)));
      const random = this.#modules.randomScripts.find(({ script }) => script.source === scriptOf(path));
      return textOf(read(file)) === textOf("") ? [] : [{ random, textOf }];
    });
  }

  async close() {
    this.#redis.close();
    await this.#server.kill();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** Tries the mutants of one script. Prints those that survive, and resolves with how many these are. */
async function tryMutants(judge, file) {
  const source = read(file);
  const players = judge.playersOf(file);
  const why = async (text) => {
    for (const { random, textOf } of players) {
      const difference = await judge.difference(random, textOf(text));
      if (difference) return difference;
    }
    return undefined;
  };
  if (await why(source))
    throw new Error(`${file} differs from its twin without a mutant: run evidence/twins`);
  const all = mutantsOf(source);
  for (const line of staleLines(file, all))
    console.log(`lua-same.mjs has a line that is not a mutant: ${line}`);
  const mutants = all.filter((mutant) => !changesNothing(file, mutant));
  let survived = 0;
  for (const { line, from, to, source: text } of mutants) {
    if (await why(text)) continue;
    survived += 1;
    console.log(
      `SURVIVED ${file}:${line}: ${from.trim()} → ${to.trim()}\n    ${source.split("\n")[line - 1].trim()}`,
    );
  }
  const same = all.length - mutants.length;
  console.log(
    `${file}: ${mutants.length - survived} of ${mutants.length} killed; ${same} are known to change nothing`,
  );
  return survived;
}

/**
 * Tries all mutants of the scripts whose path contains one of `parts`, or of all. Prints those that survive. Resolves
 * with the exit code: 1 if any survives.
 *
 * @param {string[]} parts
 */
export async function mutateScripts(parts) {
  const chosen = luaFiles().filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)));
  const judge = await Judge.open();
  process.once("SIGINT", () => void judge.close().then(() => process.exit(1)));
  try {
    let survived = 0;
    for (const file of chosen) survived += await tryMutants(judge, file);
    return survived > 0 ? 1 : 0;
  } finally {
    await judge.close();
  }
}
