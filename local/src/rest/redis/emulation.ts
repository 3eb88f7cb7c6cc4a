import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import type { Dialect } from "../../engine/dialect.ts";
import { type Command, nameOf } from "../backend.ts";
import { withoutConditions, withoutDelex } from "./conditions.ts";
import { lockedKeys } from "./locked-keys.ts";
import type { WireReply } from "./resp.ts";

/** Runs the SCAN in ARGV, and returns the type of every key after it. */
const scanWithTypes = [
  "local reply=redis.pcall(unpack(ARGV)) if reply.err then return reply end",
  "local list={} for _,key in ipairs(reply[2]) do",
  "list[#list+1]=key list[#list+1]=redis.call('TYPE',key).ok end return {reply[1],list}",
].join(" ");

const flags = /(?<=^#!lua[^\n]*)[ \t]*\bflags=(\S*)/;

/** The command that is sent to Redis instead of the client's. */
export interface Translation {
  readonly command: Command;
  /** Whether it is a script of the client, whose calls are billed. */
  readonly script: boolean;
  /** Translates Redis's reply into the client's. Default: the same. */
  readonly reply?: (reply: WireReply) => WireReply;
}

/**
 * Makes a plain Redis answer as a server of a dialect does. `redis-8.4`: `DELEX` and `SET … IFEQ|IFNE`. `upstash`: also
 * `SCAN … WITHTYPE`, and scripts with the flag `allow-key-locking`, which every Redis refuses to compile. Such a script is
 * changed before it is sent, and so has another SHA-1 at the server. The client keeps using the SHA-1 of the script that it
 * sent.
 */
export class Emulation {
  /** Whether DELEX, and SET with a condition, are emulated. */
  readonly #conditions: boolean;
  /** Whether what only Upstash has is emulated. */
  readonly #upstash: boolean;
  /** The SHA-1 of each script that is sent instead of the client's, by that of the client's. */
  readonly #sent = new Map<string, string>();

  /** @param nativeConditions whether the server has DELEX and SET IFEQ itself (Redis 8.4 and later) */
  constructor(dialect: Dialect, nativeConditions: boolean) {
    this.#conditions = dialect !== "redis" && !nativeConditions;
    this.#upstash = dialect === "upstash";
  }

  /** The command to send instead of `command`, or the error to answer with. */
  translate(command: Command): Translation | ReplyError {
    const script = command[1] ?? "";
    switch (nameOf(command)) {
      case "DELEX":
        return this.#conditions ? translateDelex(command) : { command, script: false };
      case "SET":
        return { command: this.#conditions ? withoutConditions(command) : command, script: false };
      case "SCAN":
        return this.#upstash ? translateScan(command) : { command, script: false };
      case "EVAL":
      case "EVAL_RO":
        return this.#withScript(command, this.#textFor(script), sha1(script));
      case "EVALSHA":
      case "EVALSHA_RO":
        return this.#withScript(command, this.#shaFor(script), script.toLowerCase());
      case "FCALL":
      case "FCALL_RO":
        return { command, script: true };
      case "SCRIPT":
        return this.#translateScript(command);
      default:
        return { command, script: false };
    }
  }

  /** The SHA-1 that the server knows. */
  #shaFor(given: string): string {
    return this.#sent.get(given.toLowerCase()) ?? given;
  }

  /** The script as it is sent: it checks its keys, in place of Upstash's flag. */
  #textFor(script: string): string {
    const list = flags.exec(script)?.[1]?.split(",") ?? [];
    const others = list.filter((flag) => flag !== "allow-key-locking");
    if (!this.#upstash || others.length === list.length) return script;
    const text = withLockedKeys(script, others);
    this.#sent.set(sha1(script), sha1(text));
    return text;
  }

  #withScript(command: Command, body: string, given: string): Translation {
    const sent = this.#sent.get(given);
    if (sent === undefined) return { command, script: true };
    return {
      command: [command[0]!, body, ...command.slice(2)],
      script: true,
      reply: (reply) => (reply instanceof ReplyError ? asSentByClient(reply, sent, given) : reply),
    };
  }

  #translateScript(command: Command): Translation {
    const [, action = "", ...words] = command;
    const [script = ""] = words;
    if (/^LOAD$/i.test(action) && words.length === 1) {
      return {
        command: ["SCRIPT", "LOAD", this.#textFor(script)],
        script: false,
        reply: (reply) => (reply instanceof Uint8Array ? Buffer.from(sha1(script)) : reply),
      };
    }
    if (!/^EXISTS$/i.test(action)) return { command, script: false };
    return { command: ["SCRIPT", "EXISTS", ...words.map((sha) => this.#shaFor(sha))], script: false };
  }
}

/** The error with the SHA-1 of the client's script instead of the one that was sent. */
function asSentByClient({ message }: ReplyError, sent: string, given: string): ReplyError {
  // Upstash's refusals do not name the line that raised them.
  const isRefusal = message.includes("'allow-key-locking' flag is set");
  const text = isRefusal ? message.replace(/ script: [0-9a-f]{40}, on @.*$/, "") : message;
  return new ReplyError(text.replaceAll(sent, given));
}

function translateDelex(command: Command): Translation | ReplyError {
  if (command[1] === undefined) return new ReplyError("ERR wrong number of arguments for 'delex' command");
  return { command: withoutDelex(command), script: false };
}

/** SCAN … WITHTYPE, which only Upstash has. */
function translateScan(command: Command): Translation {
  // Among the names of options, which are every second word.
  const at = command.findIndex(
    (word, position) => position >= 2 && position % 2 === 0 && word.toUpperCase() === "WITHTYPE",
  );
  if (at < 0) return { command, script: false };
  const scan = [...command.slice(0, at), ...command.slice(at + 1)];
  return { command: ["EVAL", scanWithTypes, "0", ...scan], script: false };
}

/** `kept`: the flags that it keeps. */
function withLockedKeys(script: string, kept: readonly string[]): string {
  const end = script.indexOf("\n");
  const [first, body] = end < 0 ? [script, ""] : [script.slice(0, end), script.slice(end)];
  const line = first.replace(flags, kept.length === 0 ? "" : ` flags=${kept.join(",")}`);
  // A shebang with other flags or options must remain, on a line of its own.
  return /^#!lua[ \t\r]*$/.test(line)
    ? lockedKeys + body
    : `${line}\n${lockedKeys}${body.replace(/^\n/, "")}`;
}

function sha1(script: string): string {
  return createHash("sha1").update(script).digest("hex");
}
