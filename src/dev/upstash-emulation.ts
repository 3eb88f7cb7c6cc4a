import { createHash } from "node:crypto";
import { ReplyError } from "../testing/engine.ts";
import type { WireReply } from "./resp.ts";

/**
 * `DELEX key IFEQ|IFNE value`, for a Redis that lacks it (it came with 8.4).
 *
 * KEYS[1] the key; ARGV[1] IFEQ or IFNE; ARGV[2] the value.
 * Replies 1 when the key was deleted, 0 when it is missing or the condition does not hold; Redis 8.4's error
 * for anything but a string. The error is returned, not raised: raised, it would name this script.
 */
const delexScript = `local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  return redis.error_reply('ERR Key should be of string type if conditions are specified')
end
if (value == ARGV[2]) ~= (ARGV[1] == 'IFEQ') then return 0 end
return redis.call('DEL', KEYS[1])`;

/**
 * `SET key value IFEQ|IFNE compared …`, for a Redis that lacks it.
 *
 * KEYS[1] the key; ARGV[1] IFEQ or IFNE; ARGV[2] the value to compare with; ARGV[3] GET or the empty string;
 * ARGV[4 …] the new value and the other options of SET, which are Redis's own to check.
 * A missing key is equal to nothing: IFEQ leaves it missing, IFNE creates it. Replies as SET does: OK or nil,
 * and with GET the old value or nil.
 */
const setScript = `local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return value end
if (value == ARGV[2]) == (ARGV[1] == 'IFEQ') then
  local done = redis.pcall('SET', KEYS[1], unpack(ARGV, 4))
  if done.err then return done end
  if ARGV[3] == '' then return done end
elseif ARGV[3] == '' then
  return false
end
return value`;

/**
 * Stands on the first line of a script with `allow-key-locking` and shadows `redis`, so that every key a
 * command names has to be in KEYS, as Upstash demands. Redis itself says which arguments are keys. One line,
 * so that the line numbers in error messages stay those of the script.
 */
const lockedKeysPrefix = [
  "local redis=(function(redis) local declared={} for _,key in ipairs(KEYS) do declared[key]=true end",
  "local function refusal(...) local name=string.upper(tostring((...)))",
  "if name=='FLUSHALL' or name=='FLUSHDB' then",
  "return 'ERR '..name..\" is not allowed in Lua scripts when 'allow-key-locking' flag is set\" end",
  "local keys=redis.pcall('COMMAND','GETKEYS',...) if keys.err then return nil end",
  "for _,key in ipairs(keys) do if not declared[key] then",
  "return \"ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set.",
  'Key was: "..key end end end',
  "return setmetatable({",
  "call=function(...) local err=refusal(...) if err then error({err=err}) end return redis.call(...) end,",
  "pcall=function(...) local err=refusal(...) if err then return {err=err} end return redis.pcall(...) end",
  "},{__index=redis}) end)(redis)",
].join(" ");

const flaggedFirstLine = /^#!lua([^\n]*)\bflags=([^\s]*)([^\n]*)/;

/** What is sent to Redis in the place of a command that it lacks. */
export interface Translation {
  readonly command: readonly string[];
  /** Whether it is a script of the client's, whose inner commands are billed. */
  readonly script: boolean;
  /** What the client is told instead of Redis's reply. */
  readonly reply?: (reply: WireReply) => WireReply;
}

/**
 * Makes a plain Redis answer what Upstash answers: `DELEX`, `SET … IFEQ|IFNE`, and scripts flagged
 * `allow-key-locking`, which a plain Redis refuses to compile. Such a script is changed before it is sent and
 * so has another SHA-1 there; the client goes on using the SHA-1 of what it sent.
 */
export class UpstashEmulation {
  readonly #nativeConditions: boolean;
  readonly #sent = new Map<string, string>();

  /** `nativeConditions`: the server has DELEX and SET IFEQ itself (Redis 8.4 and later). */
  constructor(options: { nativeConditions: boolean }) {
    this.#nativeConditions = options.nativeConditions;
  }

  /** What to send for `command`, or the error that it deserves. */
  translate(command: readonly string[]): Translation | ReplyError {
    const name = command[0]!.toUpperCase();
    switch (name) {
      case "DELEX":
        return this.#nativeConditions ? { command, script: false } : translateDelex(command);
      case "SET":
        return this.#nativeConditions ? { command, script: false } : translateSet(command);
      case "EVAL":
      case "EVAL_RO":
        return this.#withScript(command, this.#accept(command[1]));
      case "EVALSHA":
      case "EVALSHA_RO":
        return this.#withScript(command, this.#sent.get(command[1]?.toLowerCase() ?? ""));
      case "FCALL":
      case "FCALL_RO":
        return { command, script: true };
      case "SCRIPT":
        return this.#translateScript(command);
      default:
        return { command, script: false };
    }
  }

  /** The script as Redis gets it, when it has to be another; its SHA-1 is remembered. */
  #accept(script: string | undefined): string | undefined {
    const changed = script === undefined ? undefined : withoutLockFlag(script);
    if (changed !== undefined) this.#sent.set(sha1(script!), sha1(changed));
    return changed;
  }

  #withScript(command: readonly string[], replacement: string | undefined): Translation {
    if (replacement === undefined) return { command, script: true };
    return {
      command: [command[0]!, replacement, ...command.slice(2)],
      script: true,
      reply: (reply) => (reply instanceof ReplyError ? this.#asSentByClient(reply) : reply),
    };
  }

  #translateScript(command: readonly string[]): Translation {
    const action = command[1]?.toUpperCase();
    if (action === "LOAD" && command.length === 3) {
      const script = command[2]!;
      const changed = this.#accept(script);
      if (changed === undefined) return { command, script: false };
      return {
        command: ["SCRIPT", "LOAD", changed],
        script: false,
        reply: (reply) => (reply instanceof Uint8Array ? new TextEncoder().encode(sha1(script)) : reply),
      };
    }
    if (action === "EXISTS") {
      const asSent = command.slice(2).map((sha) => this.#sent.get(sha.toLowerCase()) ?? sha);
      return { command: ["SCRIPT", "EXISTS", ...asSent], script: false };
    }
    return { command, script: false };
  }

  /** Errors name the script by its SHA-1; the client knows only its own. */
  #asSentByClient(error: ReplyError): ReplyError {
    let message = error.message;
    // The refusals of the prefix come without the place where Redis says that they were raised.
    if (message.includes("'allow-key-locking' flag is set")) {
      message = message.replace(/ script: [0-9a-f]{40}, on @.*$/, "");
    }
    for (const [original, changed] of this.#sent) message = message.replaceAll(changed, original);
    return new ReplyError(message);
  }
}

function translateDelex(command: readonly string[]): Translation | ReplyError {
  const [, key, condition, value] = command;
  if (key === undefined || command.length === 3 || command.length > 4) {
    return new ReplyError("ERR wrong number of arguments for 'delex' command");
  }
  if (condition === undefined || value === undefined) return { command: ["DEL", key], script: false };
  const mode = condition.toUpperCase();
  if (mode === "IFDEQ" || mode === "IFDNE") return noDigests();
  if (mode !== "IFEQ" && mode !== "IFNE") return new ReplyError("ERR syntax error");
  return { command: ["EVAL", delexScript, "1", key, mode, value], script: false };
}

function translateSet(command: readonly string[]): Translation | ReplyError {
  const [, key, value, ...options] = command;
  const names = options.map((option) => option.toUpperCase());
  if (key === undefined || value === undefined) return { command, script: false };
  let condition: { mode: string; compared: string } | undefined;
  let get = "";
  const others: string[] = [];
  for (let index = 0; index < options.length; index++) {
    const name = names[index]!;
    if (name === "IFDEQ" || name === "IFDNE") return noDigests();
    if (name === "IFEQ" || name === "IFNE") {
      const compared = options[++index];
      if (condition || compared === undefined) return new ReplyError("ERR syntax error");
      condition = { mode: name, compared };
    } else if (name === "GET") {
      get = name;
    } else {
      others.push(options[index]!);
      // The argument of an expiry is a number and never an option.
      const takesNumber = name === "EX" || name === "PX" || name === "EXAT" || name === "PXAT";
      if (takesNumber && index + 1 < options.length) others.push(options[++index]!);
    }
  }
  if (!condition) return { command, script: false };
  if (names.includes("NX") || names.includes("XX")) return new ReplyError("ERR syntax error");
  const { mode, compared } = condition;
  return {
    command: ["EVAL", setScript, "1", key, mode, compared, get, value, ...others],
    script: false,
  };
}

function noDigests(): ReplyError {
  return new ReplyError("ERR IFDEQ and IFDNE need a Redis of 8.4 or later behind the local endpoint");
}

/** The script without the flag and with the check that the flag stands for; undefined when it is not flagged. */
function withoutLockFlag(script: string): string | undefined {
  const first = flaggedFirstLine.exec(script);
  if (!first) return undefined;
  const flags = first[2]!.split(",");
  if (!flags.includes("allow-key-locking")) return undefined;
  const kept = flags.filter((flag) => flag !== "allow-key-locking");
  const body = script.slice(first[0].length);
  if (kept.length === 0) return lockedKeysPrefix + body;
  // A first line that still carries flags has to stay a line of its own.
  return `#!lua${first[1]}flags=${kept.join(",")}${first[3]}\n${lockedKeysPrefix}${body.replace(/^\r?\n/, " ")}`;
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
