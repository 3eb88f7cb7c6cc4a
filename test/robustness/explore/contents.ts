import { Engine, type Reply, ReplyError } from "../../../local/src/memory/index.ts";
import type { Command, Dialect } from "../../../src/endpoints/endpoint.ts";
import { freeScript } from "../../../src/lock/free.lua.ts";
import { cellScript } from "../../../src/redis/cell.lua.ts";
import { claimScript } from "../../../src/redis/claim.lua.ts";
import { peekScript } from "../../../src/redis/peek.lua.ts";
import { shaOf, textOf } from "../../../src/redis/script.ts";
import { debounceScript } from "../../../src/sync/debounce.lua.ts";
import { arrivalScript } from "../../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../../src/sync/internal/interval.lua.ts";
import { memberScript } from "../../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../../src/sync/internal/slot.lua.ts";
import { intern } from "./intern.ts";

/** A key with its value. */
interface Entry {
  readonly key: string;
  readonly type: string;
  /** A string; the members of a sorted set, each followed by its score; or the fields of a hash, with their values. */
  readonly value: string | readonly string[];
  /** When it expires, in ms by the endpoint's clock; undefined: never. */
  readonly deadline: number | undefined;
}

/** All keys of one endpoint. Two contents with the same id are the same. */
export interface Contents {
  readonly id: number;
  readonly entries: ReadonlyMap<string, Entry>;
}

/** The scripts that endpoints know. */
const scripts = [
  cellScript,
  peekScript,
  freeScript,
  claimScript,
  slotScript,
  memberScript,
  queueScript,
  arrivalScript,
  intervalScript,
  debounceScript,
];

/** The text at a key; undefined: there is nothing, or no text. */
export function textAt({ entries }: Contents, key: string): string | undefined {
  const value = entries.get(key)?.value;
  return typeof value === "string" ? value : undefined;
}

/** The members of a sorted set, with their scores. */
export function entriesOf({ entries }: Contents, key: string): [member: string, score: number][] {
  const value = entries.get(key)?.value ?? [];
  if (typeof value === "string") return [];
  return value.flatMap((member, index) => (index % 2 === 0 ? [[member, Number(value[index + 1])]] : []));
}

/** The score of a member of a sorted set; undefined: it is not there. */
export function scoreOf(contents: Contents, key: string, member: string): number | undefined {
  return entriesOf(contents, key).find(([name]) => name === member)?.[1];
}

/** What the execution of one command leads to: a reply or an error, and what is stored then. */
interface Transition {
  readonly reply: Reply | ReplyError;
  readonly contents: Contents;
}

/**
 * Executes commands on the embedded engine. What a command does depends only on the endpoint's contents, on its clock
 * and on the command, so each such combination is executed once, and its result is remembered: schedules differ in a
 * few steps, and repeat all others.
 */
class Store {
  /** No keys. */
  readonly empty: Contents;
  readonly #dialect: Dialect;
  readonly #engine: Engine;
  readonly #contents = new Map<number, Contents>();
  readonly #transitions = new Map<string, Transition>();
  #now = 0;

  constructor(dialect: Dialect) {
    this.#dialect = dialect;
    this.#engine = new Engine({ dialect, now: () => this.#now });
    this.empty = this.#remember([]);
  }

  /** Without the keys that have expired at `now`. */
  at(contents: Contents, now: number): Contents {
    let isOver = false;
    for (const { deadline } of contents.entries.values())
      isOver ||= deadline !== undefined && deadline <= now;
    if (!isOver) return contents;
    return this.#remember(
      [...contents.entries.values()].filter(({ deadline }) => deadline === undefined || deadline > now),
    );
  }

  /** Executes a command. `now` is an integer, in ms since 1970. */
  execute(before: Contents, now: number, command: Command): Transition {
    const name = `${before.id} ${now} ${intern(command.join("\0"))}`;
    let transition = this.#transitions.get(name);
    if (!transition) {
      transition = this.#execute(before, now, command);
      this.#transitions.set(name, transition);
    }
    return transition;
  }

  #execute(before: Contents, now: number, command: Command): Transition {
    const engine = this.#engine;
    this.#now = now;
    engine.execute(["FLUSHALL"]);
    for (const { key, type, value, deadline } of before.entries.values()) {
      if (typeof value === "string") engine.execute(["SET", key, value]);
      else engine.execute(type === "hash" ? ["HSET", key, ...value] : ["ZADD", key, ...inPairs(value)]);
      if (deadline !== undefined) engine.execute(["PEXPIREAT", key, deadline]);
    }
    const reply = this.#reply(this.#withSource(command));
    const keys = engine.execute(["KEYS", "*"]) as string[];
    const entries = keys.sort().map((key) => {
      const remaining = Number(engine.execute(["PTTL", key]));
      const deadline = remaining < 0 ? undefined : now + remaining;
      const type = String(engine.execute(["TYPE", key]));
      const read = { hash: ["HGETALL", key], zset: ["ZRANGE", key, 0, -1, "WITHSCORES"] }[type];
      const value = engine.execute(read ?? ["GET", key]) as Entry["value"];
      return { key, type, value, deadline };
    });
    return { reply, contents: this.#remember(entries) };
  }

  #reply(command: Command): Reply | ReplyError {
    try {
      return this.#engine.execute(command);
    } catch (error) {
      // Any other error is a defect of the engine.
      if (!(error instanceof ReplyError)) throw error;
      return error;
    }
  }

  /** Endpoints know all scripts, by the hashes that the library names: else every round would take twice the messages. */
  #withSource([name, sha, ...rest]: Command): Command {
    if (name !== "EVALSHA") return [name!, sha!, ...rest];
    const script = scripts.find((known) => shaOf(known, this.#dialect) === sha);
    if (!script) throw new Error(`no endpoint knows the script ${sha}`);
    return ["EVAL", textOf(script.source, this.#dialect), ...rest];
  }

  #remember(entries: readonly Entry[]): Contents {
    const id = intern(`contents ${JSON.stringify(entries)}`);
    let contents = this.#contents.get(id);
    if (!contents) {
      contents = { id, entries: new Map(entries.map((entry) => [entry.key, entry])) };
      this.#contents.set(id, contents);
    }
    return contents;
  }
}

/** Members and scores as ZADD takes them: the score first. */
function inPairs(members: readonly string[]): string[] {
  return members.flatMap((member, index) => (index % 2 === 0 ? [members[index + 1]!, member] : []));
}

const stores = new Map<Dialect, Store>();

/** What is stored at one endpoint. */
export class Memory {
  readonly #store: Store;
  readonly #time: () => number;
  #contents: Contents;
  /** Since when nothing of that has expired. */
  #checkedAt = 0;

  /** @param time the endpoint's clock, an integer, in ms since 1970 */
  constructor(dialect: Dialect, time: () => number) {
    this.#store = stores.get(dialect) ?? new Store(dialect);
    stores.set(dialect, this.#store);
    this.#time = time;
    this.#contents = this.#store.empty;
  }

  /** What is there now: without what has expired. */
  get contents(): Contents {
    const now = this.#time();
    if (now !== this.#checkedAt) this.#contents = this.#store.at(this.#contents, now);
    this.#checkedAt = now;
    return this.#contents;
  }

  /** @throws ReplyError when Redis would answer with an error */
  execute(command: Command): Reply {
    const { contents } = this;
    const [name, key = "", member = ""] = command;
    const entry = contents.entries.get(String(key));
    // What checks read.
    if (name === "GET") return textAt(contents, String(key)) ?? null;
    if (name === "PTTL" && !entry) return -2;
    if (name === "PTTL") return entry?.deadline === undefined ? -1 : entry.deadline - this.#time();
    if (name === "ZSCORE") return scoreOf(contents, String(key), String(member))?.toString() ?? null;
    const { reply, contents: after } = this.#store.execute(contents, this.#time(), command);
    this.#contents = after;
    if (reply instanceof ReplyError) throw reply;
    return reply;
  }

  flush(): void {
    this.#contents = this.#store.empty;
  }

  /** The worlds have no streams. */
  subscribe(): never {
    throw new Error("there are no channels");
  }
}
