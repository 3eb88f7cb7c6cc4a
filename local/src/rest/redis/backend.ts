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
 */
export class RedisBackend implements Backend {
  readonly #url: string;
  readonly #dialect: Dialect;
  #session: Promise<Session> | undefined;
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
    const commands = sentFor(translation);
    if (!translation.script) return outcomeOf(translation, await connection.send(commands));
    const replies = await connection.send([["MULTI"], ...commands, ["EXEC"]]);
    // A malformed script command is refused when it is queued: replies are MULTI's, INFO's, then its own.
    const refused = replies[2];
    // A server that is full queues nothing, but executes what frees memory.
    const isFull = refused instanceof ReplyError && refused.message.startsWith("OOM ");
    if (isFull) return outcomeOf(translation, await connection.send(commands));
    if (refused instanceof ReplyError) return { reply: refused, billed: 1 };
    return outcomeOf(translation, executed(replies.at(-1)!));
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
    const sent = translations.map(sentFor);
    const exec = (await connection.send([["MULTI"], ...sent.flat(), ["EXEC"]])).at(-1)!;
    if (exec instanceof ReplyError) return exec;
    const replies = [...executed(exec)];
    return translations.map((each, index) => outcomeOf(each, replies.splice(0, sent[index]!.length)));
  }

  async subscribe(command: Command, subscriber: Subscriber): Promise<(() => void) | ReplyError> {
    this.#checkOpen();
    // One each, because Redis counts connections as subscribers.
    const connection = await RedisConnection.open(this.#url);
    let unsubscribed = false;
    const confirmed = new Promise<ReplyError | undefined>((resolve, reject) => {
      connection.listen(command, {
        receive(reply) {
          if (reply instanceof ReplyError) return resolve(reply);
          if (Array.isArray(reply)) subscriber.push(reply);
          return resolve(undefined);
        },
        closed: (error) => {
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
  // Some servers have one of the two. Without the key, neither writes anything.
  const key = "redis-rest-local:none";
  const replies = await connection.send([
    ["DELEX", key],
    ["SET", key, "", "IFEQ", "none"],
  ]);
  const nativeConditions = !replies.some((reply) => reply instanceof ReplyError);
  return { connection, emulation: new Emulation(dialect, nativeConditions) };
}

const stats = ["INFO", "commandstats"];

/** The commands that are sent for one: a script is between two counts. */
const sentFor = ({ script, command }: Translation): Command[] =>
  script ? [stats, command, stats] : [command];

function executed(reply: WireReply): readonly WireReply[] {
  if (Array.isArray(reply)) return reply;
  throw reply instanceof ReplyError ? reply : new BackendGoneError("EXEC was not answered with an array");
}

/** The outcome of what was sent for a command, by the replies to it. */
function outcomeOf({ script, reply: translated }: Translation, replies: readonly WireReply[]): Outcome {
  const reply = replies[script ? 1 : 0]!;
  // Without 1 for the first INFO, which the second one counts. The script's own call stays in: it is billed.
  const billed = script ? calls(replies[2]!) - calls(replies[0]!) - 1 : 1;
  return { reply: translated ? translated(reply) : reply, billed };
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
