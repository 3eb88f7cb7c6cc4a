import { isDeepStrictEqual } from "node:util";
import { Engine, type Reply, ReplyError } from "../../local/src/memory/index.ts";
import type { Dialect } from "../../src/endpoints/endpoint.ts";
import { Draw } from "../sim/draw.ts";
import type { RandomScript } from "./random-calls.ts";
import { channels, type ScriptCall, Stalled, type Step, type SteppedRedis } from "./stepped-redis.ts";

// Plays the same on two servers, and compares the answer and all that is stored after each step.

export type Words = readonly (string | number)[];

/** A server that is compared with Redis. */
export interface Compared {
  execute(command: Words): Reply;
  /** All keys. */
  keys(): readonly string[];
  /** How many commands were executed so far, those of scripts included. */
  readonly executed: number;
  /** The messages that {@link channels} have had. */
  readonly heard: readonly Reply[];
}

/** What comes next: a command, and where it calls a script, its text with what Redis is given in the hash's place. */
export interface Next {
  readonly command: Words;
  readonly script?: ScriptCall;
}

/** Where the two differ, after these steps; undefined: nowhere. */
export type Difference =
  | { readonly mine: unknown; readonly theirs: unknown; readonly trace: readonly string[] }
  | undefined;

const readers: readonly ((key: string) => Words)[] = [
  (key) => ["GET", key],
  (key) => ["ZRANGE", key, 0, -1, "WITHSCORES"],
  (key) => ["HGETALL", key],
];

/** A reply to HGETALL in one order, which says nothing. */
function inOrder(words: readonly string[]): string[] {
  return words.flatMap((word, index) => (index % 2 ? [] : [`${word}=${words[index + 1]}`])).sort();
}

/** The server's time is multiplied, which is exact up to 2^53 ns. */
const rounded = (ttl: number) => (ttl > 1e12 ? Math.round(ttl / 1e6) * 1e6 : ttl);

const byKey = ([one]: readonly unknown[], [other]: readonly unknown[]) =>
  String(one) < String(other) ? -1 : 1;

/** Redis's keys with their values and ttls. */
function stored(contents: Reply): unknown {
  return (contents as [string, string, string[], number][])
    .map(([key, kind, value, ttl]) => [key, kind === "hash" ? inOrder(value) : value, rounded(ttl)])
    .sort(byKey);
}

function contentsOf(server: Compared): unknown {
  const readAt = (key: string) =>
    readers.map((reader) => answerOf(server, reader(key))).find((answer) => answer !== "error WRONGTYPE");
  return server
    .keys()
    .map((key) => [key, readAt(key), rounded(Number(server.execute(["PTTL", key])))])
    .sort(byKey);
}

function answerOf(server: Compared, command: Words): unknown {
  try {
    return comparable(command, server.execute(command));
  } catch (error) {
    if (error instanceof ReplyError) return comparable(command, error);
    throw error;
  }
}

/** Of an error only what kind it is. */
function comparable([name]: Words, answer: Step["answer"]): unknown {
  if (answer instanceof ReplyError) return `error ${answer.message.split(" ", 1)[0]}`;
  return String(name).toUpperCase() === "HGETALL" ? inOrder(answer as string[]) : answer;
}

/**
 * Plays 60 steps on Redis and on other servers.
 *
 * @param mine made anew for each run, with the clock that it must use
 * @returns the answers of all steps; and the first difference
 */
export async function playAll(
  redis: SteppedRedis,
  mine: (now: () => number) => readonly Compared[],
  next: (draw: Draw) => Next,
  seed: number,
): Promise<{ readonly answers: readonly string[]; readonly difference: Difference }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await playOnce(redis, mine, next, seed);
    } catch (error) {
      if (!(error instanceof Stalled) || attempt === 20) throw error;
    }
  }
}

async function playOnce(
  redis: SteppedRedis,
  mine: (now: () => number) => readonly Compared[],
  next: (draw: Draw) => Next,
  seed: number,
): Promise<{ readonly answers: readonly string[]; readonly difference: Difference }> {
  const draw = new Draw(seed);
  let now = 1_700_000_000_000;
  const servers = mine(() => now);
  await redis.empty();
  const trace: string[] = [];
  const answers: string[] = [];
  for (let count = 0; count < 60; count += 1) {
    if (draw.chance(0.4)) now += draw.pick([1, 7, 20, 39, 40, 400, 500, 1_600, 2_999]);
    const { command, script } = next(draw);
    const { answer, contents, calls } = await redis.play(now, script ?? command);
    const isCounted = script !== undefined;
    const theirs = {
      answer: comparable(command, answer),
      contents: stored(contents),
      calls: isCounted ? calls : undefined,
    };
    answers.push(JSON.stringify(theirs.answer));
    trace.push(`${now} ${JSON.stringify(script?.words ?? command)} ${answers.at(-1)}`);
    for (const server of servers) {
      const before = server.executed;
      const answer = answerOf(server, command);
      // Without the call of the script itself.
      const calls = isCounted ? server.executed - before - 1 : undefined;
      const own = { answer, contents: contentsOf(server), calls };
      if (!isDeepStrictEqual(own, theirs)) return { answers, difference: { mine: own, theirs, trace } };
    }
  }
  const theirs = await redis.heard();
  answers.push(...theirs.map(String));
  const other = servers.find(({ heard }) => !isDeepStrictEqual(heard, theirs));
  return { answers, difference: other && { mine: other.heard, theirs, trace } };
}

/** The engine of this dialect, as it is compared. */
export function comparedEngine(dialect: Dialect, now: () => number): Compared {
  const engine = new Engine({ dialect, now });
  const heard: Reply[] = [];
  engine.subscribe(channels, (push) => {
    if (push[0] === "message") heard.push(push.map(String));
  });
  return {
    heard,
    get executed() {
      return engine.billed;
    },
    execute: (command) => engine.execute(command),
    keys: () => engine.execute(["KEYS", "*"]) as string[],
  };
}

/**
 * Random calls of a script on Redis, and on a server that has its twin.
 *
 * @param server default: the engine. Others have the commands of the dialect `redis-8.4`
 * @param text another text for Redis
 */
export async function playScript(
  redis: SteppedRedis,
  { script, call, disturbance }: RandomScript,
  seed: number,
  { server, text = script.source }: { server?: (now: () => number) => Compared; text?: string } = {},
): ReturnType<typeof playAll> {
  const dialect = server || seed % 2 === 0 ? "redis-8.4" : "redis";
  const open = server ?? ((now) => comparedEngine(dialect, now));
  const next = (draw: Draw): Next => {
    if (!draw.chance(0.9)) return { command: disturbance(draw) };
    const { keys, args } = call(draw);
    const words = [keys.length, ...keys, ...args];
    return { command: ["EVAL", script.source, ...words], script: { text, words } };
  };
  return playAll(redis, (now) => [open(now)], next, seed);
}
