import type { Command } from "../backend.ts";

// `DELEX key [IFEQ|IFNE value]` and `SET key value … IFEQ|IFNE value …`, which Redis has since 8.4, on an older server: a
// script compares the value, and runs DEL or SET. A missing key is equal to no value: IFEQ leaves it missing, IFNE creates it.

const compare = `local value = redis.pcall("GET", KEYS[1])
local wrong = type(value) == "table"
local met = not wrong and (value == ARGV[2]) == (ARGV[1] == "IFEQ")
`;

const deleteScript = `${compare}if wrong then return {err = "ERR Key should be of string type if conditions are specified"} end
return met and redis.pcall("DEL", KEYS[1]) or 0`;

/** If the condition does not hold, SET is sent with NX or XX so that it writes nothing: Redis then checks the other options. */
const setScript = `${compare}local words = {unpack(ARGV, 4)}
if not met then words[#words + 1] = value and "NX" or "XX" end
local done = redis.pcall(unpack(words))
if type(done) == "table" and done.err then return done end
if wrong or ARGV[3] == "GET" then return value end
return done`;

/** A command that answers with an error, when its turn has come. */
const failing = (message: string): Command => ["EVAL", "return {err = ARGV[1]}", "0", `ERR ${message}`];
const badSyntax = failing("syntax error");

/** What to send instead of a DELEX. */
export function withoutDelex([, key = "", how, value, ...more]: Command): Command {
  if (how === undefined) return ["DEL", key];
  const mode = how.toUpperCase();
  if (value === undefined || more.length > 0) return failing("wrong number of arguments for 'delex' command");
  if (mode !== "IFEQ" && mode !== "IFNE") return badSyntax;
  return ["EVAL", deleteScript, "1", key, mode, value];
}

/** What to send instead of a SET: the same, if it has no condition. */
export function withoutConditions(command: Command): Command {
  const [name = "", key = "", text = "", ...options] = command;
  const kept: string[] = [];
  let condition: readonly [mode: string, value: string] | undefined;
  let [get, hasExistence, isBad] = ["", false, false];
  for (let index = 0; index < options.length; index += 1) {
    const word = options[index]!.toUpperCase();
    const next = options[index + 1];
    const takesNext = /^(?:IF(?:EQ|NE)|[EP]X(?:AT)?)$/.test(word);
    isBad ||= takesNext && next === undefined;
    if (/^IF(?:EQ|NE)$/.test(word)) {
      isBad ||= condition !== undefined;
      condition = [word, next ?? ""];
    } else if (word === "GET") get = word;
    else kept.push(options[index]!, ...(takesNext ? [next ?? ""] : []));
    hasExistence ||= word === "NX" || word === "XX";
    // The argument of an expiry is a number, never an option.
    if (takesNext) index += 1;
  }
  if (!condition) return command;
  if (isBad || hasExistence) return badSyntax;
  return ["EVAL", setScript, "1", key, ...condition, get, name, key, text, ...kept];
}
