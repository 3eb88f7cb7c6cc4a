import { toBytes, toText } from "../../local/src/engine/commands/bytes.ts";
import { sha1 } from "../../local/src/engine/lua/sha1.ts";
import { type Engine, type Reply, ReplyError } from "../../local/src/memory/index.ts";
import type { TwinCall, Reply as TwinReply } from "../../lock-server/src/twins/twin.ts";
import { twins } from "../../lock-server/src/twins/twins.ts";
import type { Command } from "../../src/endpoints/endpoint.ts";

/**
 * An engine that runs scripts by their twins, where they have one. Everything else, a changed script included, is left
 * to the engine. As there, a script is known by its hash only once its text was sent.
 */
export class TwinEngine {
  /** How many scripts were run by their twins. */
  runs = 0;
  readonly #engine: Engine;
  readonly #known = new Set<string>();

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  /** @throws ReplyError when Redis would answer with an error. Unlike there, it does not name the line of the script. */
  execute(command: Command): Reply {
    const [name, script, count, ...rest] = command;
    if (name !== "EVALSHA" && name !== "EVAL") return this.#engine.execute(command);
    const sha = name === "EVAL" ? shaOf(String(script)) : String(script);
    const twin = twins.get(sha);
    if (!twin) return this.#engine.execute(command);
    if (name === "EVAL") this.#known.add(sha);
    // The engine does not know it either, and says so.
    if (!this.#known.has(sha)) return this.#engine.execute(command);
    const words = rest.map((word) => toBytes(String(word)));
    const [keys, args] = [words.slice(0, Number(count)), words.slice(Number(count))];
    const reply = twin.run({ call: this.#call, attempt: this.#attempt, keys, args });
    this.runs += 1;
    return toReply(reply);
  }

  /** Forgets all scripts that twins have run; the engine's own are left to it. */
  forgetScripts(): void {
    this.#known.clear();
  }

  /** Deletes all data and forgets all scripts. */
  flush(): void {
    this.#known.clear();
    this.#engine.flush();
  }

  // A twin does not read a status.
  readonly #call: TwinCall["call"] = (...words) => this.#engine.executeBytes(words.map(String)) as TwinReply;

  readonly #attempt: TwinCall["attempt"] = (...words) => {
    try {
      return this.#call(...words);
    } catch (error) {
      if (error instanceof ReplyError) return undefined;
      throw error;
    }
  };
}

const shas = new Map<string, string>();

/** The SHA-1 of a script's text. Remembered, because few scripts are sent very often. */
function shaOf(text: string): string {
  let sha = shas.get(text);
  if (sha === undefined) {
    sha = sha1(toBytes(text));
    shas.set(text, sha);
  }
  return sha;
}

function toReply(reply: TwinReply): Reply {
  if (typeof reply === "string") return toText(reply);
  return Array.isArray(reply) ? reply.map(toReply) : (reply as number | null);
}
