import type { Dialect } from "../../../local/src/engine/dialect.ts";
import { memoryEndpoint, type Reply, ReplyError, VirtualTime } from "../../../local/src/memory/index.ts";
import { questions, requirements } from "../../../src/cli/doctor/questions.ts";
import { type Diagnosis, diagnose } from "../../../src/cli/doctor/report.ts";
import { examine, Session } from "../../../src/cli/doctor/session.ts";
import { batchingSend, type Outcome, type Post } from "../../../src/endpoints/batch.ts";
import { type Endpoint, EndpointError } from "../../../src/index.ts";

// An honest endpoint in this process and in virtual time, of which one thing is bent; and what doctor finds there.

export type Words = readonly string[];

/** Executes a command. Throws a `ReplyError` where Redis would answer with an error. */
export type Execute = (words: Words) => Reply;

/** What is wrong with a server. */
export interface Bend {
  /** Executes a command in another way, also one of a pipeline. */
  readonly command?: (words: Words, execute: Execute) => Reply;
  /** Answers a pipeline in another way. */
  readonly pipeline?: (outcomes: () => Outcome[]) => Outcome[];
  readonly subscribe?: (
    usual: () => Promise<ReadableStream<Uint8Array>>,
  ) => Promise<ReadableStream<Uint8Array>>;
}

/** The network, and what doctor is told. */
export interface Circumstances {
  /** The dialect of the server, and of the client. Default upstash. */
  readonly dialect?: Dialect;
  /** ms that a request takes there, and a reply back; drawn for each. Default 0. */
  readonly latency?: () => number;
}

/** What the handler of a server answers that is not Redis. */
const extra: Readonly<Record<string, Reply>> = { CONFIG: ["maxmemory-policy", "noeviction"] };

const asked = { rest: questions.rest!, token: questions.token!, ...requirements };

/** A server that is bent, and what doctor says of it. */
export function bentServer(bend: Bend, circumstances: Circumstances = {}) {
  const { dialect = "upstash", latency = () => 0 } = circumstances;
  const time = new VirtualTime();
  const server = memoryEndpoint({ dialect, runtime: time });
  const travel = () => {
    const ms = latency();
    return ms > 0 ? time.sleep(ms) : Promise.resolve();
  };
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
    const commands = batch.map(({ command }) => command);
    await travel();
    const execute = () => commands.map(outcomeOf);
    const outcomes = batch.length > 1 && bend.pipeline ? bend.pipeline(execute) : execute();
    await travel();
    return outcomes;
  };
  const open = (): Endpoint => ({
    name: "e",
    dialect,
    exactReplies: true,
    send: batchingSend({ name: "e", maxRequests: 6, pipelines: true, post }),
    subscribe(channel, signal) {
      const usual = () => travel().then(() => server.subscribe(channel, signal));
      return bend.subscribe ? bend.subscribe(usual) : usual();
    },
  });
  return {
    engine: server.engine,
    /** What doctor finds. It takes virtual time. */
    async judged(): Promise<Diagnosis> {
      const settings = { prefix: "p", timeout: 5_000, id: "id", runtime: time };
      const session = new Session({ number: 1, url: "", variable: "", open }, settings);
      const examined = await time.settle(examine([session], asked), 24 * 3_600_000);
      return diagnose(examined, true).endpoints[0]!;
    },
  };
}

/** The rows that are not `yes`, with the answer. */
export function lacksOf({ rows }: Diagnosis): Record<string, string> {
  const lacks = rows.filter(({ answer }) => answer !== "yes");
  return Object.fromEntries(lacks.map(({ need, answer }) => [need, answer]));
}
