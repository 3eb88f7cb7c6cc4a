import type { Dialect } from "../../../local/src/engine/dialect.ts";
import { memoryEndpoint, type Reply, ReplyError } from "../../../local/src/memory/index.ts";
import { examine } from "../../../src/cli/doctor/doctor.ts";
import { questionsOf } from "../../../src/cli/doctor/questions.ts";
import { batchingSend, type Outcome, type Post } from "../../../src/endpoints/batch.ts";
import { type Endpoint, EndpointError } from "../../../src/index.ts";

// An honest endpoint in this process, of which one thing is bent; and what doctor --conformance finds there.

export type Words = readonly string[];

/** Executes a command. Throws a `ReplyError` where Redis would answer with an error. */
export type Execute = (words: Words) => Reply;

/** What is wrong with a server. */
export interface Bend {
  /** Executes a command in another way, also one of a pipeline. */
  readonly command?: (words: Words, execute: Execute) => Reply;
  /** Answers a pipeline in another way. */
  readonly pipeline?: (outcomes: Outcome[]) => Outcome[];
  readonly subscribe?: () => Promise<ReadableStream<Uint8Array>>;
}

/** What the handler of a server answers that is not Redis. */
const extra: Readonly<Record<string, Reply>> = { CONFIG: ["maxmemory-policy", "noeviction"] };

/** A server that is bent, and what doctor says of it. `travel`: how long a request is on its way, and a reply. */
export function bentServer(
  bend: Bend,
  dialect: Dialect = "upstash",
  travel: () => Promise<unknown> = () => Promise.resolve(),
) {
  const server = memoryEndpoint({ dialect });
  const honest: Execute = (words) => extra[words[0]!.toUpperCase()] ?? server.engine.execute(words);

  function outcomeOf(command: readonly (string | number)[]): Outcome {
    const words = command.map(String);
    try {
      return { reply: bend.command ? bend.command(words, honest) : honest(words) };
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      return { error: new EndpointError("e", "redis", `HTTP 400, ${error.message}`, { status: 400 }) };
    }
  }

  const post: Post = async (batch) => {
    await travel();
    const outcomes = batch.map(({ command }) => outcomeOf(command));
    const answered = batch.length > 1 && bend.pipeline ? bend.pipeline(outcomes) : outcomes;
    await travel();
    return answered;
  };
  const open = (): Endpoint => ({
    name: "e",
    dialect,
    exactReplies: true,
    send: batchingSend({ name: "e", maxRequests: 6, pipelines: true, post }),
    subscribe: bend.subscribe ?? ((...asked) => server.subscribe(...asked)),
  });
  return {
    engine: server.engine,
    /** What doctor finds. */
    judged: (timeout = 5_000) =>
      examine(
        { number: 1, variable: "REDIS_URL", open },
        { prefix: "p", timeout, id: "id" },
        questionsOf(true),
      ),
  };
}

const refuse = (message: string): never => {
  throw new ReplyError(message);
};

/** Refuses the commands of which something is true. */
export const refusing = (pattern: RegExp, message = "ERR syntax error"): Bend => ({
  command: (words, execute) => (pattern.test(words.join(" ")) ? refuse(message) : execute(words)),
});

/** Does something else with the commands of one form, such as `SET NX PX`: their words in capital letters. */
export const instead = (form: RegExp, other: NonNullable<Bend["command"]>): Bend => ({
  command: (words, execute) =>
    form.test(words.filter((word) => /^[A-Z]+$/.test(word)).join(" "))
      ? other(words, execute)
      : execute(words),
});

/** Executes a command, and answers something else. */
export const answering = (form: RegExp, answer: (reply: Reply, words: Words) => Reply): Bend =>
  instead(form, (words, execute) => answer(execute(words), words));

/** Words without some that follow on another. */
export function without(words: Words, option: string, count: number): Words {
  const at = words.indexOf(option);
  return at < 0 ? words : [...words.slice(0, at), ...words.slice(at + count)];
}

/** Items, and another one in a place. */
export const replaced = <Item>(items: readonly Item[], place: number, other: Item): Item[] =>
  items.map((item, index) => (index === place ? other : item));

/** Gives each SET of a form half of its ttl. */
export const halving = (form: RegExp): Bend =>
  instead(form, (words, execute) => {
    const at = words.indexOf("PX") + 1;
    return execute(replaced(words, at, String(Math.ceil(Number(words[at]) / 2))));
  });

/** Does something more to the lock's key after a script, sent as text or by its hash, that does one of these operations. */
export const afterScript = (operation: RegExp, alter: (key: string, execute: Execute) => void): Bend =>
  instead(/^EVAL/, (words, execute) => {
    const reply = execute(words);
    if (words.some((word) => operation.test(word))) alter(words[3]!, execute);
    return reply;
  });
