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
  readonly #sent = new Map<string, Replacement>();

  /** @param nativeConditions whether the server has DELEX and SET IFEQ itself (Redis 8.4 and later) */
  constructor(dialect: Dialect, nativeConditions: boolean) {
    this.#conditions = dialect !== "redis" && !nativeConditions;
    this.#upstash = dialect === "upstash";
  }

  /** The command to send instead of `command`, or the error to answer with. */
  translate(command: Command): Translation | ReplyError {
    switch (nameOf(command)) {
      case "DELEX":
        return this.#conditions ? translateDelex(command) : { command, script: false };
      case "SET":
        return { command: this.#conditions ? withoutConditions(command) : command, script: false };
      case "SCAN":
        return this.#upstash ? translateScan(command) : { command, script: false };
      case "EVAL":
      case "EVAL_RO":
        return this.#withScript(command, this.#replace(command[1]));
      case "EVALSHA":
      case "EVALSHA_RO":
        return this.#withScript(command, this.#sent.get((command[1] ?? "").toLowerCase()));
      case "FCALL":
      case "FCALL_RO":
        return { command, script: true };
      case "SCRIPT":
        return this.#translateScript(command);
      default:
        return { command, script: false };
    }
  }

  /** The replacement of a script, whose SHA-1 is stored; undefined if Redis can run the script unchanged. */
  #replace(script: string | undefined): Replacement | undefined {
    if (script === undefined) return undefined;
    const changed = this.#changed(script);
    if (changed === undefined) return undefined;
    const replacement = { given: sha1(script), sent: sha1(changed), body: changed };
    this.#sent.set(replacement.given, { ...replacement, body: replacement.sent });
    return replacement;
  }

  /** The script that checks its keys, without Upstash's flag; undefined if Redis can run the script unchanged. */
  #changed(script: string): string | undefined {
    const list = flags.exec(script)?.[1]?.split(",") ?? [];
    if (!this.#upstash || !list.includes("allow-key-locking")) return undefined;
    return withLockedKeys(
      script,
      list.filter((flag) => flag !== "allow-key-locking"),
    );
  }

  #withScript(command: Command, replacement: Replacement | undefined): Translation {
    if (replacement === undefined) return { command, script: true };
    return {
      command: [command[0]!, replacement.body, ...command.slice(2)],
      script: true,
      reply: (reply) => (reply instanceof ReplyError ? asSentByClient(reply, replacement) : reply),
    };
  }

  #translateScript(command: Command): Translation {
    const action = (command[1] ?? "").toUpperCase();
    if (action === "LOAD" && command.length === 3) {
      const script = command[2]!;
      const changed = this.#replace(script);
      if (changed === undefined) return { command, script: false };
      return {
        command: ["SCRIPT", "LOAD", changed.body],
        script: false,
        reply: (reply) => (reply instanceof Uint8Array ? Buffer.from(changed.given) : reply),
      };
    }
    if (action === "EXISTS") {
      const asSent = command.slice(2).map((sha) => this.#sent.get(sha.toLowerCase())?.sent ?? sha);
      return { command: ["SCRIPT", "EXISTS", ...asSent], script: false };
    }
    return { command, script: false };
  }
}

/** A script that is sent instead of the client's. */
interface Replacement {
  /** SHA-1 of the client's script. */
  readonly given: string;
  /** SHA-1 of the script that is sent. */
  readonly sent: string;
  /** The argument of the command: the script's text, or its SHA-1. */
  readonly body: string;
}

/** The error with the SHA-1 of the client's script instead of the one that was sent. */
function asSentByClient(error: ReplyError, { given, sent }: Replacement): ReplyError {
  let { message } = error;
  // Upstash's refusals do not name the line that raised them.
  if (message.includes("'allow-key-locking' flag is set")) {
    message = message.replace(/ script: [0-9a-f]{40}, on @.*$/, "");
  }
  return new ReplyError(message.replaceAll(sent, given));
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
