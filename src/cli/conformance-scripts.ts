import { randomUUID } from "node:crypto";
import { cellScript } from "../redis/cell.lua.ts";
import { peekScript } from "../redis/peek.lua.ts";
import { textOf } from "../redis/script.ts";
import { memberScript } from "../sync/internal/member.lua.ts";
import {
  type ConformanceSession,
  probeTtl,
  type Seen,
  type Span,
  UnexpectedReply,
} from "./conformance-session.ts";
import { mustBeStored, ttlMistake, write } from "./conformance-stored.ts";

// What a conformance check asks of scripts: the library's own, as it sends them.

const works: Seen = { works: true };
const fails = (found: string): Seen => ({ works: false, found });

/** How many requests show that each is executed once. */
const executions = 10;

/** How a script is sent. */
type Evaluation = "EVAL" | "EVALSHA";

/** The lowest fence: as many digits as one of today has. */
const leastFence = 1_234_567_890_123;

/** One lock, by the library's own script. */
class ScriptedLock {
  readonly key: string;
  readonly value: string;
  readonly #session: ConformanceSession;
  readonly #keys: readonly string[];
  readonly #how: Evaluation;

  constructor(session: ConformanceSession, name: string, how: Evaluation) {
    this.#session = session;
    this.#keys = [session.key(name), session.key(`${name}:void`), session.key(`${name}:fence`)];
    this.#how = how;
    this.key = this.#keys[0]!;
    this.value = `c${this.key}`;
  }

  async run(operation: string, value: string, ttl: number): Promise<Span & { reply: readonly unknown[] }> {
    const script = this.#how === "EVAL" ? cellScript.source : cellScript.sha.redis;
    // Of a release, the tags that it expects: a value that is compared whole has none.
    const next = operation === "release" ? "" : value;
    const args = [operation, value, 1, 1, ttl, next, leastFence, probeTtl];
    const { reply, ...at } = await this.#session.askTimed([
      this.#how,
      script,
      this.#keys.length,
      ...this.#keys,
      ...args,
    ]);
    return { ...at, reply: Array.isArray(reply) ? reply : [] };
  }

  /** Acquires it. Each execution draws a fence that is larger by 1. */
  async acquire(ttl: number = probeTtl): Promise<{ readonly fence: number; readonly at: Span }> {
    const { reply, ...at } = await this.run("acquire", this.value, ttl);
    const [echo, fence] = reply;
    if (echo !== this.value || !(Number(fence) >= leastFence)) throw otherReply();
    return { fence: Number(fence), at };
  }
}

const otherReply = () => new UnexpectedReply("the script's reply is another one");

export async function askEval(session: ConformanceSession): Promise<Seen> {
  const lock = new ScriptedLock(session, "script", "EVAL");
  const { key, value } = lock;
  const stored = (ttl: number, at: Span) => ({ key, value, ttl, at });
  const { at, fence } = await lock.acquire(probeTtl / 2);
  await mustBeStored(session, stored(probeTtl / 2, at), "after a script's SET");
  if (fence > leastFence + 1) return fails("a number in a script is another one");
  const { reply, ...look } = await lock.run("acquire", "cother", probeTtl);
  const [no, remaining, other] = reply;
  if (no !== 0 || other !== value) throw otherReply();
  const wrong = ttlMistake(probeTtl / 2, at, remaining, look);
  if (wrong) return fails(`a script's PTTL says: ${wrong}`);
  const extended = await lock.run("extend", value, probeTtl);
  if (extended.reply[0] !== value) throw otherReply();
  await mustBeStored(session, stored(probeTtl, extended), "after a script's second SET");
  const refused = await lock.run("release", "cother", probeTtl);
  if (refused.reply[0] !== 0) throw otherReply();
  await mustBeStored(session, stored(probeTtl, extended), "after a script that deletes nothing");
  const released = await lock.run("release", value, probeTtl);
  if (released.reply[0] !== value) throw otherReply();
  await mustBeStored(session, { key, value: null }, "after a script's DEL");
  session.kept.push({ key, value: null });
  return works;
}

export async function askEvalsha(session: ConformanceSession): Promise<Seen> {
  const lock = new ScriptedLock(session, "sha", "EVALSHA");
  const { at } = await lock.acquire();
  const stored = { key: lock.key, value: lock.value, ttl: probeTtl, at };
  await mustBeStored(session, stored);
  session.kept.push(stored);
  return works;
}

export async function askNoscript(session: ConformanceSession): Promise<Seen> {
  const unknown = randomUUID().replaceAll("-", "").padEnd(40, "0");
  const reply = session.ask(["EVALSHA", unknown, 1, session.key("noscript")]);
  return reply.then(
    () => fails("it ran a script that it cannot know"),
    (error: Error) => {
      if (error.message.includes("NOSCRIPT")) return works;
      throw error;
    },
  );
}

export async function askFlag(session: ConformanceSession): Promise<Seen> {
  const { key, value } = await write(session, session.key("peek"), "v1");
  const script = textOf(peekScript.source, "upstash");
  const reply = await session.ask(["EVAL", script, 2, key, session.key("peek:fence"), "peek"]);
  return Array.isArray(reply) && reply[0] === value && reply[1] > 0 ? works : fails(otherReply().message);
}

export async function askDeadline(session: ConformanceSession): Promise<Seen> {
  const keys = [session.key("members"), session.key("members:void")];
  const member = `m${keys[0]}`;
  const args = ["acquire", member, 2, probeTtl, 1, "", "", 0];
  const sent = await session.askTimed(["EVAL", memberScript.source, keys.length, ...keys, ...args]);
  if (!Array.isArray(sent.reply) || sent.reply[0] !== member) throw otherReply();
  await mustBeStored(session, { key: keys[0]!, ttl: probeTtl, at: sent }, "after PEXPIREAT");
  return works;
}

/** By EVALSHA, if scripts can be sent so. */
export async function askExecutions(session: ConformanceSession): Promise<Seen> {
  const lock = new ScriptedLock(session, "once", session.seen.evalsha?.works ? "EVALSHA" : "EVAL");
  const { fence: before } = await lock.acquire();
  let last = before;
  for (let sent = 0; sent < executions; sent += 1) ({ fence: last } = await lock.acquire());
  const executed = last - before;
  return { works: executed === executions, found: `${executions} requests, ${executed} executions` };
}
