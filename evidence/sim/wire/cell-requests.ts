import type { Command } from "../../../src/index.ts";
import { freeScript } from "../../../src/inspect/free.lua.ts";
import { cellScript } from "../../../src/redis/cell.lua.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import type { Script } from "../../../src/redis/script.ts";
import { isCompletion, partsOf, type Request, requestOf } from "./request.ts";
import { type Read, synchronizers } from "./sync-requests.ts";

// What each command does, by its words: those of cell.lua are explained there.

/** @throws Error for a command that the library does not send */
export function readCommand(command: Command): Request {
  const words = command.map(String);
  const [name = "", script = ""] = words;
  const { keys, words: args } = partsOf(words);
  const known = /^EVAL/.test(name) && scripts.find(([each]) => isScript(script, each));
  const read = known ? known[1] : natives[name];
  if (!read) throw new Error(`the simulator does not know what ${name} does to ${keys}`);
  return read(keys, args);
}

/** Whether a command's hash or text is that of a script. */
function isScript(text: string, { source, sha }: Script): boolean {
  return text === sha.redis || text === sha.upstash || text.endsWith(source);
}

const readCell: Read = (names, [op = "", token = "", count, ttl, , , , ...words]) => {
  const keys = names.slice(0, Number(count));
  const [tombstone, ...counters] = names.slice(Number(count));
  const operation = op === "prove" ? "claim" : (op as Request["operation"]);
  const next = words.filter((_, index) => index % 2 === 1);
  const own = operation === "claim" ? next : words.filter((_, index) => index % 2 === 0);
  const raises = operation === "keep" && ttl === "0" && counters.length > 0;
  const more = { own, next, tombstone, counters, raises, ttl: Number(ttl) };
  const hits = keys.map(() => "t").join("");
  const isDone: Request["isDone"] = (reply) =>
    Array.isArray(reply) && reply[0] === token && (operation !== "end" || reply[1] === hits);
  return requestOf(operation, keys, own.at(-1)!, { ...more, isDone });
};

const readSet: Read = (keys, [text = "", how, ...words]) => {
  const ttl = Number(words.at(-1));
  if (how === "IFEQ") {
    const [own = ""] = words;
    const operation = isCompletion([text]) ? "end" : "keep";
    return requestOf(operation, keys, own, { next: [text], counters: [], ttl, isDone: isOk });
  }
  // A lock's own value may be there because two names are of one endpoint; a run's counts as granted.
  const isNew: Request["isDone"] = (reply) => reply === null || (/^[PCNA]1 /.test(text) && reply === text);
  const isDone = words.includes("GET") ? isNew : isOk;
  return requestOf("claim", keys, text, { next: [text], counters: [], ttl, isDone });
};

const isOk: Request["isDone"] = (reply) => reply === "OK" || reply === 1;

const scripts: readonly (readonly [Script, Read])[] = [
  [cellScript, readCell],
  [freeScript, (keys, [, nonce = ""]) => requestOf("free", keys, nonce, { isDone: () => true })],
  [peekScript, ([key = "", counter]) => requestOf("peek", [key], "", { counter, isDone: () => true })],
  ...synchronizers,
];

/** Redis's own commands. */
const natives: Readonly<Record<string, Read>> = {
  SET: readSet,
  DELEX: (keys, [, own = ""]) => requestOf("end", keys, own, { next: [""], isDone: isOk }),
  PUBLISH: (keys) => requestOf("tell", keys, "", { isDone: () => true }),
};
