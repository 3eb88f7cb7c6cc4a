import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import type { Dialect } from "../../engine/dialect.ts";
import { type Backend, BackendGoneError, type Command, type Outcome, type Subscriber } from "../backend.ts";
import { RedisConnection } from "./connection.ts";
import { Emulation, type Translation } from "./emulation.ts";
import type { WireReply } from "./resp.ts";

interface Session {
  readonly connection: RedisConnection;
  readonly emulation: Emulation;
}

/**
 * A running Redis server as a backend. It emulates what the dialect has and the server lacks.
 *
 * Billed commands are counted as follows: a script is sent inside MULTI … EXEC between two `INFO commandstats`. The
 * difference of their counts is exactly what the script called, even if other clients use the server, unless the server
 * is full and allows no MULTI. Every other command counts as 1.
 *
 * @example
 * const handle = upstashHandler({ backend: new RedisBackend("redis://127.0.0.1:6379"), token: "secret" });
 */
export class RedisBackend implements Backend {
  readonly #url: string;
  readonly #dialect: Dialect;
  #session: Promise<Session> | undefined;
  /** Their connections: one each, because Redis counts connections as subscribers. */
  readonly #subscriptions = new Set<RedisConnection>();
  #closed = false;

  /**
   * Connects at the first command, and again at the first command after the connection broke.
   *
   * @param url `redis://` or `rediss://`
   * @param dialect what it answers as; `redis`: as the server itself. Default `upstash`
   */
  constructor(url: string, dialect: Dialect = "upstash") {
    this.#url = url;
    this.#dialect = dialect;
  }

  async execute(command: Command): Promise<Outcome> {
    const { connection, emulation } = await this.#connected();
    const translation = emulation.translate(command);
    if (translation instanceof ReplyError) return { reply: translation, billed: 1 };
    if (!translation.script) {
      const [reply] = await connection.send([translation.command]);
      return { reply: replyOf(translation, reply!), billed: 1 };
    }
    const commands = measured(translation);
    const replies = await connection.send([["MULTI"], ...commands, ["EXEC"]]);
    // A malformed script command is refused when it is queued: replies are MULTI's, INFO's, then its own.
    const refused = replies[2];
    // A server that is full queues nothing, but executes what frees memory.
    const isFull = refused instanceof ReplyError && refused.message.startsWith("OOM ");
    if (isFull) return outcome(translation, await connection.send(commands), 0);
    if (refused instanceof ReplyError) return { reply: refused, billed: 1 };
    return outcome(translation, executed(replies.at(-1)!), 0);
  }

  async transaction(commands: readonly Command[]): Promise<readonly Outcome[] | ReplyError> {
    const { connection, emulation } = await this.#connected();
    const translations: Translation[] = [];
    for (const command of commands) {
      const translation = emulation.translate(command);
      if (translation instanceof ReplyError) {
        return new ReplyError("EXECABORT Transaction discarded because of previous errors.");
      }
      translations.push(translation);
    }
    const queue = translations.flatMap((each) => (each.script ? measured(each) : [each.command]));
    const exec = (await connection.send([["MULTI"], ...queue, ["EXEC"]])).at(-1)!;
    if (exec instanceof ReplyError) return exec;
    const replies = executed(exec);
    let position = 0;
    return translations.map((translation) => {
      const start = position;
      position += translation.script ? 3 : 1;
      if (translation.script) return outcome(translation, replies, start);
      return { reply: replyOf(translation, replies[start]!), billed: 1 };
    });
  }

  async subscribe(command: Command, subscriber: Subscriber): Promise<(() => void) | ReplyError> {
    this.#checkOpen();
    const connection = await RedisConnection.open(this.#url);
    // It may have been closed while the connection was opened.
    if (this.#closed) connection.close();
    this.#subscriptions.add(connection);
    let unsubscribed = false;
    const confirmed = new Promise<ReplyError | undefined>((resolve, reject) => {
      connection.listen(command, {
        receive(reply) {
          if (reply instanceof ReplyError) return resolve(reply);
          if (Array.isArray(reply)) subscriber.push(reply);
          return resolve(undefined);
        },
        closed: (error) => {
          this.#subscriptions.delete(connection);
          reject(error);
          if (!unsubscribed) subscriber.lost(error);
        },
      });
    });
    const unsubscribe = () => {
      unsubscribed = true;
      connection.close();
    };
    const refusal = await confirmed;
    if (refusal) unsubscribe();
    return refusal ?? unsubscribe;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const connection of this.#subscriptions) connection.close();
    const session = this.#session;
    this.#session = undefined;
    // A connection that failed to open needs no closing.
    const [opened] = await Promise.allSettled([session]);
    if (opened.status === "fulfilled") opened.value?.connection.close();
  }

  async #connected(): Promise<Session> {
    this.#checkOpen();
    const pending = this.#session;
    const [known] = await Promise.allSettled([pending]);
    if (known.status === "fulfilled" && known.value?.connection.open) return known.value;
    // Several callers may find the connection broken; only the first opens a new one.
    if (this.#session === pending) this.#session = openSession(this.#url, this.#dialect);
    return this.#session!;
  }

  #checkOpen(): void {
    if (this.#closed) throw new BackendGoneError("the backend is closed");
  }
}

async function openSession(url: string, dialect: Dialect): Promise<Session> {
  const connection = await RedisConnection.open(url);
  // Some servers have one of the two. Without the key, the second command writes nothing.
  const [info, set] = await connection.send([
    ["COMMAND", "INFO", "DELEX"],
    ["SET", "redis-rest-local:none", "", "IFEQ", "none"],
  ]);
  const hasDelex = Array.isArray(info) && info[0] !== null && info[0] !== undefined;
  const nativeConditions = hasDelex && !(set instanceof ReplyError);
  return { connection, emulation: new Emulation(dialect, nativeConditions) };
}

const stats = ["INFO", "commandstats"];

function measured(translation: Translation): Command[] {
  return [stats, translation.command, stats];
}

function executed(reply: WireReply): readonly WireReply[] {
  if (Array.isArray(reply)) return reply;
  throw reply instanceof ReplyError ? reply : new BackendGoneError("EXEC was not answered with an array");
}

/** The outcome of a script whose count before it is at `start`, its reply and the count after it next. */
function outcome(translation: Translation, replies: readonly WireReply[], start: number): Outcome {
  const [before, reply, after] = replies.slice(start, start + 3);
  // Without 1 for the first INFO, which the second one counts. The script's own call stays in: it is billed.
  return { reply: replyOf(translation, reply!), billed: calls(after!) - calls(before!) - 1 };
}

function replyOf(translation: Translation, reply: WireReply): WireReply {
  return translation.reply ? translation.reply(reply) : reply;
}

/** All calls that a server has counted, without those that locked-keys.ts adds to a script's own. */
function calls(info: WireReply): number {
  const text = info instanceof Uint8Array ? new TextDecoder().decode(info) : "";
  let sum = 0;
  for (const [, name, count] of text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (name !== "command|getkeys" && name !== "command") sum += Number(count);
  }
  return sum;
}
