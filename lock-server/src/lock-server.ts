import { Channels } from "./channels.ts";
import type { CommandContext } from "./engine/command.ts";
import { commands } from "./engine/commands.ts";
import { execute } from "./engine/execute.ts";
import { Keyspace } from "./engine/keyspace.ts";
import { ReplyError } from "./engine/reply-error.ts";
import { type Sql, SqlStorage } from "./engine/sql-storage.ts";
import type { Reply } from "./twins/twin.ts";
import { twins } from "./twins/twins.ts";

/** The part of a Durable Object's state that a {@link LockServer} uses. */
export interface LockServerState {
  readonly storage: {
    readonly sql: Sql;
    /** Runs a function in a transaction, which its error undoes. */
    transactionSync<Result>(run: () => Result): Result;
    getAlarm(): Promise<number | null>;
    setAlarm(time: number): Promise<void>;
  };
}

/** The outcome of one command, as the REST API writes it. */
export type CommandResult = { readonly result: Reply } | { readonly error: string };

/** How long what has expired may stay in the storage, in ms. It is invisible from its deadline on. */
const sweepInterval = 900_000;

/**
 * A Durable Object with SQLite storage that executes what this package sends: experimental. Export it from your Worker, and
 * give its class to `new_sqlite_classes` in the Wrangler configuration. Its requests come from {@link lockServerApp} and
 * {@link durableEndpoint}.
 *
 * Commands are executed one after another. The platform holds back each answer until the writes before it are on disk, so
 * an acknowledged lock survives every restart and every move of the object.
 *
 * @example
 * export { LockServer } from "redlock-edge-server";
 */
export class LockServer {
  readonly #state: LockServerState;
  readonly #storage: SqlStorage;
  readonly #channels = new Channels();
  readonly #context: CommandContext;
  #hasAlarm = false;

  constructor(state: LockServerState, _env?: unknown) {
    this.#state = state;
    const { sql } = state.storage;
    this.#storage = new SqlStorage(sql);
    this.#storage.onExpiring = () => void this.#planSweep();
    this.#context = {
      space: new Keyspace(this.#storage),
      commands,
      scripts: twins,
      executed: 0,
      publish: (channel, payload) => this.#channels.publish(channel, payload),
      subscribers: (channel) => this.#channels.subscribers(channel),
      unknown,
    };
  }

  /** Executes the commands of a request of {@link lockServerApp} or {@link durableEndpoint}. */
  async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/subscribe") {
      const headers = { "content-type": "text/event-stream", "cache-control": "no-cache" };
      return new Response(this.#channels.subscribe(searchParams.get("channel") ?? ""), { headers });
    }
    const commands = (await request.json()) as readonly (readonly (string | number)[])[];
    return Response.json(
      this.#executeAll(await Promise.all(commands.map((words) => byHash(words.map(String))))),
    );
  }

  /** Deletes what has expired. */
  async alarm(): Promise<void> {
    this.#hasAlarm = false;
    if (this.#storage.sweep(Date.now())) await this.#planSweep();
  }

  #executeAll(commands: readonly (readonly string[])[]): CommandResult[] {
    this.#context.space.now = Date.now();
    return commands.map((command) => this.#executeOne(command));
  }

  #executeOne(command: readonly string[]): CommandResult {
    try {
      return { result: this.#state.storage.transactionSync(() => execute(this.#context, command)) };
    } catch (error) {
      if (error instanceof ReplyError) return { error: error.message };
      // Not quoted: it may contain a part of the request, such as a lock's token.
      const name = error instanceof Error ? error.name : typeof error;
      return { error: `ERR the command could not be executed (${name}), and has changed nothing` };
    }
  }

  async #planSweep(): Promise<void> {
    if (this.#hasAlarm) return;
    this.#hasAlarm = true;
    const { storage } = this.#state;
    try {
      // One that an earlier life of this object has set stands.
      if ((await storage.getAlarm()) === null) await storage.setAlarm(Date.now() + sweepInterval);
    } catch {
      this.#hasAlarm = false;
    }
  }
}

/** A command with the hash of its script in place of the text, if this version has the script. */
async function byHash(command: readonly string[]): Promise<readonly string[]> {
  const [name = "", text = "", ...rest] = command;
  if (!/^EVAL$/i.test(name)) return command;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text)));
  const sha = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return twins.has(sha) ? ["EVALSHA", sha, ...rest] : command;
}

/** The error for what this server does not have. */
function unknown(what: string): ReplyError {
  const why =
    what === "script"
      ? "this lock server runs only the scripts of its own version of redlock-edge: deploy it with the version of its users"
      : `unknown ${what}: this is a lock server of redlock-edge, and no Redis`;
  return new ReplyError(`ERR ${why}`);
}
