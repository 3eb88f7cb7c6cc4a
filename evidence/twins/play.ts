import process from "node:process";
import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, vi } from "vitest";
import { Engine, type Reply, ReplyError } from "../../local/src/memory/index.ts";
import { type CommandResult, LockServer } from "../../lock-server/src/lock-server.ts";
import { objectStorage } from "../../lock-server/test/storage.ts";
import { startServer } from "../../test/support/redis-servers.ts";
import { Draw } from "../sim/draw.ts";
import { channels, Stalled, SteppedRedis } from "./stepped-redis.ts";

// Plays the same on Redis, on the embedded engine and on a lock server, and compares the answers and all that is stored.

export type Words = readonly (string | number)[];

type Answer = Reply | ReplyError;

/** A server that is compared with Redis. */
interface Compared {
  execute(commands: readonly Words[]): Promise<readonly Answer[]>;
  keys(): readonly string[];
  /** How many commands were executed so far, those of scripts included. A lock server does not tell. */
  readonly executed?: number;
  /** The messages that {@link channels} have had. A lock server does not tell. */
  readonly heard?: readonly Reply[];
}

/** One of these reads a key; to the others, it is of the wrong type. */
const readers: readonly ((key: string) => Words)[] = [
  (key) => ["GET", key],
  (key) => ["ZRANGE", key, 0, -1, "WITHSCORES"],
  (key) => ["HGETALL", key],
];

/** Of an error only what kind it is, and of a hash its fields in one order. */
function comparable([name]: Words, answer: Answer): unknown {
  if (answer instanceof ReplyError) return `error ${answer.message.split(" ", 1)[0]}`;
  if (String(name).toUpperCase() !== "HGETALL") return answer;
  const words = answer as string[];
  return words.flatMap((word, index) => (index % 2 ? [] : [`${word}=${words[index + 1]}`])).sort();
}

/** The keys of a server, with their values and ttls. Redis's time is multiplied, which is exact up to 2^53 ns. */
async function contentsOf(server: Pick<Compared, "execute">, keys: readonly string[]): Promise<unknown> {
  const commands = keys.flatMap((key) => [["PTTL", key], ...readers.map((reader) => reader(key))]);
  const answers = await server.execute(commands);
  const found = answers.map((answer, index) => comparable(commands[index]!, answer));
  const contents = keys.map((key, index) => {
    const [ttl, ...values] = found.slice(4 * index, 4 * index + 4);
    const rounded = Number(ttl) > 1e12 ? Math.round(Number(ttl) / 1e6) * 1e6 : ttl;
    return [key, values.find((value) => value !== "error WRONGTYPE"), rounded] as const;
  });
  return contents.sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Returns what plays 60 steps on a redis-server of the `describe` around the call, and resolves with its answers. */
export function besideRedis(): (next: (draw: Draw) => Words, run: number) => Promise<readonly string[]> {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.info(`SEED=${seed}`);
  let redis: SteppedRedis;
  beforeAll(async () => {
    redis = await SteppedRedis.open(await startServer());
  });
  afterAll(() => redis.close());
  return (next, run) => play(redis, next, seed + run);
}

async function play(
  redis: SteppedRedis,
  next: (draw: Draw) => Words,
  seed: number,
  attempts = 20,
): Promise<readonly string[]> {
  vi.useFakeTimers({ toFake: ["Date"], now: 1_700_000_000_000 });
  try {
    await redis.empty();
    return await playOnce(redis, next, new Draw(seed));
  } catch (error) {
    if (!(error instanceof Stalled) || attempts === 1) throw error;
    return await play(redis, next, seed, attempts - 1);
  } finally {
    vi.useRealTimers();
  }
}

/** Fails at the first difference between Redis and another server. */
async function playOnce(
  redis: SteppedRedis,
  next: (draw: Draw) => Words,
  draw: Draw,
): Promise<readonly string[]> {
  const servers = [openEngine(), await openLockServer()];
  const trace: string[] = [];
  const answers: string[] = [];
  const compare = (mine: unknown, theirs: unknown) => {
    if (!isDeepStrictEqual(mine, theirs)) expect(mine, trace.join("\n")).toStrictEqual(theirs);
  };
  for (let count = 0; count < 60; count += 1) {
    if (draw.chance(0.4)) vi.advanceTimersByTime(draw.pick([1, 7, 20, 39, 40, 400, 500, 1_600, 2_999]));
    const command = next(draw);
    const isScript = command[0] === "EVAL";
    const { answer, calls, keys } = await redis.play(Date.now(), command);
    const theirs = { answer: comparable(command, answer), contents: await contentsOf(redis, keys), calls };
    answers.push(JSON.stringify(theirs.answer));
    trace.push(`${Date.now()} ${JSON.stringify(isScript ? command.slice(2) : command)} ${answers.at(-1)}`);
    for (const server of servers) {
      const before = server.executed;
      const [own] = await server.execute([command]);
      // Without the call of the script itself.
      const called = isScript && before !== undefined ? server.executed! - before - 1 : calls;
      const contents = await contentsOf(server, server.keys());
      compare({ answer: comparable(command, own!), contents, calls: called }, theirs);
    }
  }
  const theirs = await redis.heard();
  for (const { heard = theirs } of servers) compare(heard, theirs);
  return [...answers, ...theirs.map(String)];
}

function openEngine(): Compared {
  const engine = new Engine({ dialect: "redis-8.4", now: Date.now });
  const heard: Reply[] = [];
  engine.subscribe(channels, (push) => {
    if (push[0] === "message") heard.push(push.map(String));
  });
  const execute = (command: Words): Answer => {
    try {
      return engine.execute(command);
    } catch (error) {
      if (error instanceof ReplyError) return error;
      throw error;
    }
  };
  return {
    heard,
    get executed() {
      return engine.billed;
    },
    execute: async (commands) => commands.map(execute),
    keys: () => engine.execute(["KEYS", "*"]) as string[],
  };
}

async function openLockServer(): Promise<Compared> {
  // A script that fails leaves its earlier writes, as in Redis: an object undoes them.
  const storage = { ...objectStorage(), transactionSync: <Result>(run: () => Result) => run() };
  const server = new LockServer({ storage });
  const ask = (path: string, body?: string) =>
    server.fetch(new Request(`https://o/${path}`, { method: "POST", ...(body && { body }) }));
  for (const channel of channels) await ask(`subscribe?channel=${channel}`);
  return {
    async execute(commands) {
      const response = await ask("", JSON.stringify(commands));
      const results = (await response.json()) as readonly CommandResult[];
      return results.map((each) => ("error" in each ? new ReplyError(each.error) : each.result));
    },
    keys: () =>
      storage.sql
        .exec("SELECT key FROM entries WHERE deadline > ? OR deadline IS NULL", Date.now())
        .toArray()
        .map(({ key }) => String(key)),
  };
}
