import { toBytes, toText } from "../../../local/src/engine/commands/bytes.ts";
import type { ByteReply } from "../../../local/src/engine/commands/reply.ts";
import { sha1 } from "../../../local/src/engine/lua/sha1.ts";
import type { Engine, Reply } from "../../../local/src/memory/index.ts";
import type { Command } from "../../../src/endpoints/endpoint.ts";
import { announceTwin } from "./announce-twin.ts";
import { arrivalTwin } from "./arrival-twin.ts";
import { cellTwin } from "./cell-twin.ts";
import { claimTwin } from "./claim-twin.ts";
import { freeTwin } from "./free-twin.ts";
import { intervalTwin } from "./interval-twin.ts";
import { memberTwin } from "./member-twin.ts";
import { peekTwin } from "./peek-twin.ts";
import { publishTwin } from "./publish-twin.ts";
import { queueTwin } from "./queue-twin.ts";
import { slotTwin } from "./slot-twin.ts";
import type { Twin, TwinCall } from "./twin.ts";

/** All twins, by the SHA-1 of the script that each replaces. */
export const twins: ReadonlyMap<string, Twin> = new Map(
  [
    cellTwin,
    peekTwin,
    freeTwin,
    publishTwin,
    claimTwin,
    memberTwin,
    intervalTwin,
    arrivalTwin,
    slotTwin,
    queueTwin,
    announceTwin,
  ].flatMap((twin) => [
    [twin.sha.redis, twin],
    [twin.sha.upstash, twin],
  ]),
);

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
    const reply = twin.run({ call: this.#call, keys, args });
    this.runs += 1;
    return toReply(reply);
  }

  /** Deletes all data and forgets all scripts. */
  flush(): void {
    this.#known.clear();
    this.#engine.flush();
  }

  readonly #call: TwinCall["call"] = (...words) => this.#engine.executeBytes(words.map(String));
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

function toReply(reply: ByteReply): Reply {
  if (typeof reply === "string") return toText(reply);
  return Array.isArray(reply) ? reply.map(toReply) : (reply as number | null);
}
