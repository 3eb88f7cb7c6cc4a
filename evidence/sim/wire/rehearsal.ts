import { Engine, type Reply, ReplyError } from "../../../local/src/memory/index.ts";
import type { Command } from "../../../src/index.ts";
import { entryOf } from "../field.ts";
import { epoch } from "../world/process.ts";
import { nonceOf, partsOf, type Request, requestOf } from "./request.ts";
import { readSynchronizer } from "./sync-requests.ts";

/** A ttl, in ms, that no request asks for. */
const unusualTtl = 999_999_999_989;

/** A value that no request has written. */
const foreign = "of somebody else";

/** What stands at the keys of a command. */
type Contents = ReadonlyMap<string, string>;

/** What a command has left at its keys. */
interface Scene {
  readonly seeded: Contents;
  readonly after: Contents;
  /** ms until a key expires. */
  readonly ttl: (key: string) => number;
  readonly reply: Reply;
}

/**
 * Finds out what a command does by executing it on a server of its own: without any data, with what the command seems to
 * expect, and with what is another's. So the simulator knows neither the library's scripts nor their arguments.
 */
export class Rehearsal {
  readonly #server = new Engine({ dialect: "upstash", now: () => epoch });
  /** By text: the hashes of scripts. */
  readonly #hashes = new Map<string, string>();
  /** By key: the values that commands have written there. */
  readonly #written = new Map<string, Set<string>>();

  /** @throws Error for the hash of a script whose text was never sent */
  read(command: Command): Request {
    const all = command.map(String);
    const request = readSynchronizer(all) ?? this.#rehearse(this.#byHash(all));
    const { operation, keys, own } = request;
    const writes = operation === "claim" || operation === "announce";
    const { next = writes ? own : [] } = request;
    for (const [index, text] of next.entries())
      if (text) entryOf(this.#written, keys[index]!, () => new Set()).add(text);
    return request;
  }

  /** By the hash of its text a script is found faster. */
  #byHash([name = "", text = "", ...rest]: readonly string[]): readonly string[] {
    if (name !== "EVAL") return [name, text, ...rest];
    const hash = entryOf(this.#hashes, text, () => String(this.#server.execute(["SCRIPT", "LOAD", text])));
    return ["EVALSHA", hash, ...rest];
  }

  #rehearse(command: readonly string[]): Request {
    const { keys } = partsOf(command);
    const alone = this.#play(command, keys, new Map());
    if (alone.after.has(keys[0]!)) return this.#claim(command, keys, alone);
    return this.#change(command, keys, alone) ?? this.#other(command, keys, alone);
  }

  /** It writes where there is nothing: values of one nonce, counters, and nothing at a tombstone. */
  #claim(command: readonly string[], keys: readonly string[], alone: Scene): Request {
    const { after } = alone;
    const nonce = nonceOf(after.get(keys[0]!)!);
    const isValue = (key: string) => nonceOf(after.get(key) ?? "") === nonce;
    const own = keys.filter(isValue).map((key) => after.get(key)!);
    const refused = () => this.#play(command, keys, new Map([[keys[0]!, foreign]])).reply;
    return requestOf("claim", keys.filter(isValue), own.at(-1)!, {
      own,
      next: own,
      tombstone: keys.find((key) => !after.has(key)),
      counters: keys.filter((key) => after.has(key) && !isValue(key)),
      ttl: alone.ttl(keys[0]!),
      isDone: doneBy(command, alone.reply, refused),
    });
  }

  /** It changes what it expects, or looks for it. Undefined: it expects nothing that was ever written. */
  #change(command: readonly string[], keys: readonly string[], alone: Scene): Request | undefined {
    const scene = this.#expected(command, keys, alone);
    if (!scene) return undefined;
    const { seeded, after } = scene;
    const at = keys.filter((key) => seeded.has(key));
    const others = keys.filter((key) => !seeded.has(key));
    const own = at.map((key) => seeded.get(key)!);
    const next = at.map((key) => after.get(key) ?? "");
    const isDone = doneBy(command, scene.reply, () => alone.reply);
    const request = requestOf("end", at, own.at(-1)!, { own, next, isDone });
    const left = others.find((key) => alone.after.has(key));
    if (next.includes("") || left !== undefined) return { ...request, tombstone: left };
    const isKept = next.every((text, index) => text === own[index]);
    const ttl = scene.ttl(at[0]!);
    const counters = others.filter((key) => after.has(key));
    return {
      ...request,
      operation: "keep",
      tombstone: others.find((key) => !after.has(key)),
      counters,
      raises: isKept && ttl === unusualTtl && counters.length > 0,
      ttl: ttl === unusualTtl ? 0 : ttl,
    };
  }

  /** The command with what it expects: of the values that were ever written, those that it names and that matter to it. */
  #expected(command: readonly string[], keys: readonly string[], alone: Scene): Scene | undefined {
    const words = new Set(command);
    const named = keys.map((key) => [...words].filter((word) => this.#written.get(key)?.has(word)));
    let first: Scene | undefined;
    for (let choice = 0; named.some((texts) => texts.length > choice); choice += 1) {
      const chosen = keys.flatMap((key, index) => {
        const text = named[index]![choice] ?? named[index]!.at(-1);
        return text === undefined ? [] : [[key, text] as const];
      });
      const scene = this.#play(command, keys, new Map(chosen));
      first ??= scene;
      if (hasEffect(scene, alone)) return scene;
    }
    return first;
  }

  /** It removes whatever is there, or reads it, or ends what was never sent, or publishes. */
  #other(command: readonly string[], keys: readonly string[], alone: Scene): Request {
    const { words } = partsOf(command);
    const [nonce = ""] = [...words].sort((one, other) => other.length - one.length);
    const isDone = () => true;
    if (command[0] === "PUBLISH") return requestOf("tell", keys.slice(0, 1), "", { isDone });
    const left = keys.find((key) => alone.after.has(key));
    if (left !== undefined) return requestOf("end", keys.slice(0, 1), nonce, { tombstone: left, isDone });
    const { after } = this.#play(command, keys, new Map([[keys[0]!, foreign]]));
    if (!after.has(keys[0]!)) return requestOf("free", keys, nonce, { isDone });
    return requestOf("peek", keys.slice(0, 1), "", { counter: keys[1], isDone });
  }

  #play(command: readonly string[], keys: readonly string[], seeded: Contents): Scene {
    const server = this.#server;
    server.execute(["FLUSHALL"]);
    for (const [key, text] of seeded) server.execute(["SET", key, text, "PX", unusualTtl]);
    const reply = this.#execute(command);
    const after = new Map<string, string>();
    const ttls = new Map<string, number>();
    for (const key of keys) {
      const text = server.execute(["GET", key]);
      if (text === null) continue;
      after.set(key, text as string);
      ttls.set(key, Number(server.execute(["PTTL", key])));
    }
    return { seeded, after, ttl: (key) => ttls.get(key) ?? 0, reply };
  }

  #execute(command: readonly string[]): Reply {
    try {
      return this.#server.execute(command);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      throw new Error(`the simulator cannot rehearse ${command[0]}: ${error.message}`);
    }
  }
}

/** Whether a command has changed what it found, or has written beside it what it does not write without that. */
function hasEffect({ seeded, after, ttl }: Scene, alone: Scene): boolean {
  for (const [key, text] of seeded) if (after.get(key) !== text || ttl(key) !== unusualTtl) return true;
  return [...after.keys()].some((key) => !seeded.has(key) && !alone.after.has(key));
}

/**
 * Reads replies by what the same command has replied when it was done, and when it was refused: the first text by which these
 * two differ. Numbers may count anything. The replies of commands of Redis's own are known.
 */
function doneBy(command: readonly string[], done: Reply, refused: () => Reply): Request["isDone"] {
  if (!/^EVAL/.test(command[0]!)) return (reply) => isDonePlainly(command, reply);
  const yes = flat(done);
  let place: number | undefined;
  return (reply) => {
    const no = place === undefined ? flat(refused()) : [];
    place ??= yes.findIndex((word, index) => typeof word === "string" && word !== no[index]);
    return flat(reply)[place] === yes[place];
  };
}

function flat(reply: Reply): readonly Reply[] {
  if (!Array.isArray(reply)) return [reply];
  return reply.some(Array.isArray) ? reply.flatMap(flat) : reply;
}

/** A lock's own value may be there because two names are of one endpoint; a run's counts as granted. */
function isDonePlainly(command: readonly string[], reply: Reply): boolean {
  const [, , text = ""] = command;
  if (command.includes("GET")) return reply === null || (/^[PCNA]1 /.test(text) && reply === text);
  return reply === "OK" || reply === 1;
}
