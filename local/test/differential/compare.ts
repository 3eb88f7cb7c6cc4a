import { expect } from "vitest";
import { Engine, ReplyError } from "../../src/engine/engine.ts";
import type { Answer, RedisServer } from "./redis-server.ts";

/** Runs the same commands on redis-server and engine, one after another, and expects equal answers. */
export async function expectSameAnswers(
  redis: RedisServer,
  commands: readonly (readonly (string | number)[])[],
  engine: Engine = new Engine({ dialect: "redis" }),
): Promise<void> {
  await redis.execute(["FLUSHALL"]);
  const trace: string[] = [];
  for (const command of commands) {
    const [theirs, ours] = [await redis.execute(command), execute(engine, command)];
    trace.push(`${JSON.stringify(command)} -> ${JSON.stringify(theirs)}`);
    // Redis computes with 80 bits, where the machine has them; the engine refuses what no double can hold.
    if (isBeyondDouble(theirs)) return;
    if (isNear(ours, theirs, command)) continue;
    expect(comparable(ours, command, redis.version), trace.join("\n")).toEqual(
      comparable(theirs, command, redis.version),
    );
  }
}

function isBeyondDouble(answer: Answer): boolean {
  return "reply" in answer && typeof answer.reply === "string" && /^-?\d{309,}$/.test(answer.reply);
}

/** The engine's answer to one command. */
export function execute(engine: Engine, command: readonly (string | number)[]): Answer {
  try {
    return { reply: engine.execute(command) };
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    return { error: error.message };
  }
}

const unordered =
  /^(?:KEYS|SMEMBERS|HKEYS|HVALS|SCAN|[SH]SCAN|SPOP|[SHZ]RAND(?:MEMBER|FIELD)|SINTER|SUNION|SDIFF)$/;
// Tolerances, because the servers execute a command one after the other: in seconds, and in ms.
const slack: Readonly<Record<string, number>> = { TTL: 3, EXPIRETIME: 3, PTTL: 3000, PEXPIRETIME: 3000 };

/** The ms until expiry in a reply of the library's scripts: the last but one of three or of five. */
function remainingIn(reply: unknown): number | undefined {
  const ms = Array.isArray(reply) && (reply.length === 3 || reply.length === 5) ? reply.at(-2) : undefined;
  return typeof ms === "number" && ms >= 0 ? ms : undefined;
}

function isNear(ours: Answer, theirs: Answer, [name]: readonly (string | number)[]): boolean {
  if ("error" in ours || "error" in theirs) return false;
  const [ourTime, theirTime] = [remainingIn(ours.reply), remainingIn(theirs.reply)];
  if (ourTime !== undefined && theirTime !== undefined) {
    const [us, them] = [ours.reply, theirs.reply] as [unknown[], unknown[]];
    const rest = (reply: unknown[]) => JSON.stringify(reply.filter((_, index) => index !== reply.length - 2));
    return Math.abs(ourTime - theirTime) <= slack.PTTL! && rest(us) === rest(them);
  }
  const [our, their] = [ours.reply, theirs.reply];
  if (typeof our === "number" && typeof their === "number" && Math.abs(our) > 2 ** 52) {
    // The client of redis-server parses integers digit by digit, and rounds each time.
    return Math.abs(our - their) <= 2 ** 13;
  }
  if (String(name).toUpperCase() === "ZRANGE") return haveNearScores(our, their);
  const distance = slack[String(name).toUpperCase()];
  if (distance === undefined) return false;
  const [left, right] = [Number(ours.reply), Number(theirs.reply)];
  // A negative reply (no key, or no expiry) must be equal.
  return left >= 0 && right >= 0 && Math.abs(left - right) <= distance;
}

/** Whether two lists differ at most in the last digits of scores: a stored distance depends on how sin and asin are computed. */
function haveNearScores(ours: unknown, theirs: unknown): boolean {
  if (!Array.isArray(ours) || !Array.isArray(theirs) || ours.length !== theirs.length) return false;
  return ours.every((item, position) => {
    const [our, their] = [Number(item), Number(theirs[position])];
    return item === theirs[position] || Math.abs(our - their) <= 1e-12 * Math.abs(their);
  });
}

/** An answer without what may differ: the order of sets, the time, and error texts of other versions of Redis. */
function comparable(answer: Answer, command: readonly (string | number)[], version: string): unknown {
  const name = String(command[0]).toUpperCase();
  if ("error" in answer) {
    // The engine has the error texts of 7.0; other versions changed some of them.
    return { error: version.startsWith("7.0.") ? answer.error : answer.error.split(" ")[0] };
  }
  const { reply } = answer;
  if (name === "HGETALL") return pairs(reply as string[]).sort();
  if (unordered.test(name)) return flatten(reply).sort();
  if (/^GEO(?:SEARCH|RADIUS)/.test(name) && !hasOrder(command)) return unorderedItems(reply);
  if (name === "TIME") return (reply as string[]).length;
  return name.startsWith("Z") ? scores(reply) : normal(reply);
}

/** Whether a search for positions says in which order it answers. */
function hasOrder(command: readonly (string | number)[]): boolean {
  const words = command.map((word) => String(word).toUpperCase());
  return (
    words.includes("ASC") || words.includes("DESC") || (words.includes("COUNT") && !words.includes("ANY"))
  );
}

function unorderedItems(reply: unknown): unknown {
  return Array.isArray(reply) ? reply.map((item) => JSON.stringify(item)).sort() : reply;
}

function pairs(flat: readonly string[]): string[] {
  return flat.flatMap((field, position) => (position % 2 === 0 ? [`${field}=${flat[position + 1]}`] : []));
}

function flatten(reply: unknown): string[] {
  return Array.isArray(reply) ? reply.flatMap(flatten) : [JSON.stringify(reply)];
}

/** Scores as numbers: Redis 7.0 prints 0.1 with 17 digits, 7.2 with one. */
function scores(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(scores);
  return typeof reply === "string" && reply.trim() !== "" && !Number.isNaN(Number(reply))
    ? Number(reply)
    : reply;
}

function normal(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(normal);
  // An error inside a list is an object for the client of redis-server, and a string for the engine.
  if (reply instanceof Error) return reply.message;
  // The client rounds a large integer at every digit, so its result may differ from the nearest double.
  if (typeof reply === "number" && Math.abs(reply) > 2 ** 52) return Number(reply.toPrecision(13));
  // Redis has two forms of a HyperLogLog, and the engine has one of them.
  if (typeof reply === "string" && reply.startsWith("HYLL") && reply.length > 4) return "HYLL";
  // C prints the sign of NaN, which JavaScript does not show.
  return typeof reply === "string" ? reply.replaceAll("-nan", "nan") : reply;
}
