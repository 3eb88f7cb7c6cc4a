import {
  checkInteger,
  checkName,
  checkType,
  integer,
  milliseconds,
  oneOf,
  type Schema,
  typed,
  wrongType,
} from "../check/check.ts";
import { isRedlockError, LockLostError } from "../errors/errors.ts";
import { digestOf } from "../inspect/inspect.ts";
import { acquire } from "../lock/acquire.ts";
import { checkCall, type LockClient, settingsOf } from "../lock/client.ts";
import { emit } from "../lock/events.ts";
import type { Lock } from "../lock/lock.ts";
import { type Settings, timeUntil } from "../lock/options.ts";
import { query } from "../quorum/query.ts";
import { quorumOf } from "../quorum/tally.ts";
import { keepAlive, randomToken, stopwatch } from "../runtime/runtime.ts";
import { MailboxFullError } from "./errors.ts";
import {
  checkSyncOptions,
  type SyncOptions,
  syncSchema,
  type WaitOptions,
  waitSchema,
} from "./internal/hold.ts";
import { agreeing, Place } from "./internal/mailbox-place.ts";
import { type Clock, type PostedMessage, PostProtocol } from "./internal/mailbox-protocol.ts";
import {
  type FailedMessage,
  type MailboxHandler,
  Turn,
  type TurnEnd,
  type Work,
} from "./internal/mailbox-turn.ts";

/** Options of a mailbox, and defaults of its calls. */
export interface MailboxOptions<Value = unknown> extends Omit<SyncOptions, "autoExtend"> {
  /** The most messages that wait, the one that is being handled included: an integer from 1 to 10 000. Default 100. */
  readonly maxSize?: number | undefined;
  /** If so many wait: `refuse` throws {@link MailboxFullError}, `drop-oldest` forgets the oldest message. Default `refuse`. */
  readonly onFull?: "refuse" | "drop-oldest" | undefined;
  /** For how long messages wait after the last post, and the ids of handled messages are remembered, in ms. Default 86 400 000 (a day). */
  readonly retention?: number | undefined;
  /** The most bytes that a value may have as JSON: an integer from 1 to 1 000 000. Default 100 000. */
  readonly maxBytes?: number | undefined;
  /**
   * How often a message may fail. Then `onFailed` gets it, so set that, too, and it is forgotten. The end of the process that handles it is a
   * failure, too. Default: without limit.
   */
  readonly maxAttempts?: number | undefined;
  /** Gets a message that has failed `maxAttempts` times, for example to store it. If it fails, the message stays. */
  readonly onFailed?: ((message: FailedMessage<Value>) => Promise<unknown> | unknown) | undefined;
}

/** Options of one call. */
export interface PostOptions extends Omit<WaitOptions, "autoExtend"> {
  /**
   * Waits until the message is handled, and takes the turn over if its holder dies. After `wait` ms it returns `queued`.
   * Default false: it returns as soon as the message is queued.
   */
  readonly standBy?: boolean | undefined;
}

/** The result of `post`. */
export interface Posted {
  /**
   * - `handled`: by this call, or by another one while this call stood by, which may also have given it up (`maxAttempts`) or
   *   dropped it (`onFull`);
   * - `queued`: the call that has the turn will handle it, or the next one that takes the turn;
   * - `duplicate`: a message with this id was handled, or given up, before.
   */
  readonly status: "handled" | "queued" | "duplicate";
  /** How many messages wait for another turn, as far as this call knows, because it had to stop or has failed at them. */
  readonly left: number;
}

/** The promise of `post`: its end, and before that the moment from which the message is safe. */
export interface Posting extends Promise<Posted> {
  /**
   * Resolves as soon as the message is stored: this call has the turn, or has left the message with the call that has it. Then
   * you can tell the sender that you have the message, and with `waitUntil` of your client the call goes on by itself. Rejects
   * with the error of the call if the message may not be stored. If you read it, no later error is thrown unless you await the
   * call itself: the message stays, and the event `messageFailed` or the console has the error of your handler.
   */
  readonly stored: Promise<void>;
}

/** The result of `drain`. */
export interface Drained {
  /** How many messages it has handled. 0: none wait, or another call has the turn. */
  readonly handled: number;
  /** How many messages still wait, as far as this call knows. */
  readonly left: number;
}

/** The result of `inspect`. */
export interface MailboxState {
  /** Whether a call has the turn. */
  readonly isHeld: boolean;
  /** Which call has it: the first 12 hex digits of the SHA-256 of its token, as `redlock-edge list` shows it. */
  readonly holder?: string | undefined;
  /** How many messages wait, the one that is being handled included. */
  readonly waiting: number;
}

type OwnOptions = Pick<
  MailboxOptions,
  "maxSize" | "onFull" | "retention" | "maxBytes" | "maxAttempts" | "onFailed"
>;

type Rules<Value> = {
  readonly [Name in keyof Omit<OwnOptions, "onFailed">]-?: NonNullable<OwnOptions[Name]>;
} & Pick<MailboxOptions<Value>, "onFailed">;

const ownSchema: Schema<OwnOptions> = {
  maxSize: integer(1, 10_000),
  onFull: oneOf("refuse", "drop-oldest"),
  retention: milliseconds(1_000, 2 ** 45),
  maxBytes: integer(1, 1_000_000),
  maxAttempts: integer(1, Number.MAX_SAFE_INTEGER),
  onFailed: typed("function"),
};
const { autoExtend: _extend, ...shared } = syncSchema;
const { autoExtend: _extendCall, ...usual } = waitSchema;
const schema: Schema<MailboxOptions> = { ...shared, ...ownSchema };
const callSchema: Schema<PostOptions> = { ...usual, standBy: typed("boolean") };

/**
 * One turn at a time for a name, and no message is lost: a call that finds the turn taken leaves its message with the holder,
 * the call that has the turn, which handles the message before its turn ends. For chats and agents that must answer messages
 * one after another.
 *
 * Each message is handled at least once, as long as calls of `post` or `drain` come. If a process dies while it handles a
 * message, the next turn handles the message again.
 *
 * @example
 * const thread = new Mailbox(redlock, `thread:${id}`, { ttl: 30_000 });
 * const { status } = await thread.post({ id: event.id, value: event.text }, async (messages, { signal }) => {
 *   for await (const { value } of messages) await answer(value, { signal });
 * });
 */
export class Mailbox<Value> {
  /** The mailbox's name. */
  readonly name: string;
  readonly #redlock: LockClient;
  readonly #defaults: SyncOptions;
  readonly #rules: Rules<Value>;
  readonly #clock = { stamp: 0 };

  /**
   * @throws TypeError | RangeError when an argument is wrong
   */
  constructor(redlock: LockClient, name: string, options: MailboxOptions<Value> = {}) {
    checkCall("new Mailbox(redlock, name)", { redlock, name, options });
    checkSyncOptions("a mailbox", options as MailboxOptions, schema);
    const {
      maxSize = 100,
      onFull = "refuse",
      retention = 86_400_000,
      maxBytes = 100_000,
      maxAttempts = Infinity,
      onFailed,
      ...defaults
    } = options;
    this.#redlock = redlock;
    this.name = checkName("name", name);
    this.#defaults = defaults;
    this.#rules = { maxSize, onFull, retention, maxBytes, maxAttempts, onFailed };
    checkInteger("retention (ms)", retention, this.#settings({}).ttl, 2 ** 45);
  }

  /**
   * Takes the turn, if nobody has it, and handles the message and all that arrive meanwhile. Otherwise leaves the message with
   * the call that has the turn.
   *
   * After an error, the message may be in the mailbox or not. Post it again, with its id.
   *
   * @example
   * await thread.post({ id: event.id, value: event.text }, answerAll).stored;
   * return new Response(null, { status: 202 });
   *
   * @param message what to handle: its `id`, so that a repeated message is handled once, and its `value`, as JSON
   * @param handler reads messages, as in the example of {@link Mailbox}; not called if another call has the turn
   *
   * @throws what the handler has thrown at this message: the message stays, and the next turn tries it again
   * @throws LockLostError when the turn is lost, for example after `maxHold`, and `wait` is over
   * @throws MailboxFullError when `maxSize` messages wait
   * @throws QuorumError | LockHeldError when neither the turn nor a quorum of endpoints could be had within `wait`
   * @throws RangeError when the value is too large; TypeError when it is no JSON
   */
  post(
    message: { readonly id: string; readonly value: Value },
    handler: MailboxHandler<Value>,
    options: PostOptions = {},
  ): Posting {
    let onStored!: () => void;
    const early = new Promise<void>((resolve) => {
      onStored = resolve;
    });
    const posted = this.#post(message, { handler, options, onStored });
    // If you do not ask for it, you get every error from the call itself.
    const get = () => Promise.race([early, posted.then(() => undefined)]);
    return Object.defineProperty(posted, "stored", { get }) as Posting;
  }

  async #post(
    message: { readonly id: string; readonly value: Value },
    { handler, options, onStored }: PostCall<Value>,
  ): Promise<Posted> {
    if (typeof message !== "object" || message === null) throw wrongType("message", message, `an ${example}`);
    const { id } = message;
    if (typeof id !== "string") throw wrongType("message.id", id, `a string in an ${example}`);
    checkName("message.id", id);
    const json = this.#jsonOf(message.value);
    const call = new MailboxCall(this.#callRules(handler, options), { id, json, onStored });
    const running = call.run();
    keepAlive(call.settings, running);
    const posted = await running;
    emit(call.settings.onEvent, { type: "posted", resources: [this.name], id, status: posted.status });
    return posted;
  }

  /**
   * Handles the messages that wait, if nobody has the turn. Call it in a cron job: if a process has died, messages would
   * otherwise wait for the next post.
   *
   * @throws what the handler has thrown; QuorumError | LockHeldError as {@link Mailbox.post}
   */
  async drain(handler: MailboxHandler<Value>, options: Omit<PostOptions, "standBy"> = {}): Promise<Drained> {
    const call = new MailboxCall(this.#callRules(handler, options), undefined);
    const { left } = await call.run();
    return { handled: call.handled, left };
  }

  /**
   * How many messages wait, and whether a call has the turn. Both may have changed by the time that you read it.
   *
   * @throws QuorumError when too few endpoints answered
   */
  async inspect(options: Pick<PostOptions, "timeout" | "prefix"> = {}): Promise<MailboxState> {
    checkSyncOptions("inspect", options, callSchema);
    const settings = this.#settings(options);
    const place = new Place(settings, this.name, this.#rules);
    const answers = (await query(settings, ["inspect", [this.name]], (call) => place.look(call))).answers();
    const quorum = quorumOf(settings.endpoints.length);
    const sizes = answers.map(({ size }) => size).sort((a, b) => b - a);
    const token = agreeing(answers, quorum)?.[0]?.holder;
    const holder = token === undefined ? undefined : await digestOf(token);
    return { isHeld: token !== undefined, holder, waiting: sizes[quorum - 1]! };
  }

  #settings(options: PostOptions): Settings {
    const { standBy: _standBy, signal: _signal, deadline: _deadline, ...given } = options;
    return settingsOf(this.#redlock, this.#defaults, given, { autoExtend: true });
  }

  #jsonOf(value: Value): string {
    const { maxBytes } = this.#rules;
    const json = JSON.stringify(value);
    if (json === undefined) throw wrongType("message.value", value, `JSON in an ${example}`);
    const size = new TextEncoder().encode(json).length;
    if (size <= maxBytes) return json;
    throw new RangeError(
      `the value has ${size} bytes as JSON, and maxBytes is ${maxBytes}: store it elsewhere, and post where`,
    );
  }

  #callRules(handler: MailboxHandler<Value>, options: PostOptions): CallRules<Value> {
    checkType("handler", handler, "function");
    checkSyncOptions("the call", options, callSchema, { usual: "wait" });
    const settings = this.#settings(options);
    return { ...this.#rules, settings, name: this.name, handler, options, clock: this.#clock };
  }
}

/** What `post` takes, for errors. */
const example = "object, as in mailbox.post({ id: event.id, value: event.text }, handler)";

interface PostCall<Value> {
  readonly handler: MailboxHandler<Value>;
  readonly options: PostOptions;
  /** Called, perhaps more than once, when the message is stored. */
  readonly onStored: () => void;
}

type CallRules<Value> = Rules<Value> & {
  readonly settings: Settings;
  readonly name: string;
  readonly handler: MailboxHandler<Value>;
  readonly options: PostOptions;
  readonly clock: Clock;
};

/** One call of `post` or `drain`. */
class MailboxCall<Value> {
  readonly settings: Settings;
  readonly #rules: CallRules<Value>;
  readonly #message: PostedMessage | undefined;
  readonly #place: Place;
  readonly #work: Work = { done: new Set(), failed: new Map(), handled: new Set() };
  readonly #tokens = new Set<string>();
  readonly #elapsed: () => number;
  readonly #limit: number;

  constructor(rules: CallRules<Value>, message: Omit<PostedMessage, "call" | "position"> | undefined) {
    const { settings, name, options } = rules;
    this.settings = settings;
    this.#rules = rules;
    this.#message = message && { ...message, position: undefined, call: randomToken(settings.runtime) };
    this.#place = new Place(settings, name, rules);
    this.#elapsed = stopwatch(settings.runtime);
    this.#limit = timeUntil(options.deadline ?? Infinity, settings.runtime);
  }

  /** How many messages it has handled. */
  get handled(): number {
    return this.#work.handled.size;
  }

  async run(): Promise<Posted> {
    for (;;) {
      const taken = await this.#take();
      if ("status" in taken) return taken;
      const end = await taken.turn.serve();
      const isOver = this.#limit <= this.#elapsed();
      // Others may have left a message with a turn that is lost, so it takes one again, even once its own is handled.
      const mayGoOn = end === "long" || (end === "lost" && this.#elapsed() < this.settings.wait);
      if (mayGoOn && !isOver && !this.#hasFailed) continue;
      return { status: this.#statusAfter(end, isOver), left: taken.turn.left };
    }
  }

  /** Whether it has handled its own message. */
  get #isHandled(): boolean {
    return this.#message !== undefined && this.#work.handled.has(this.#message.id);
  }

  /** Whether the handler has failed at its own message. */
  get #hasFailed(): boolean {
    return this.#message !== undefined && this.#work.failed.has(this.#message.id);
  }

  /** The status of the message at the end of the call. Throws its error. */
  #statusAfter(end: TurnEnd, isOver: boolean): Posted["status"] {
    const { failed } = this.#work;
    if (this.#isHandled) return "handled";
    // The handler has run beyond the deadline, so the message stays.
    if (isOver && end === "lost") return "queued";
    if (this.#hasFailed) throw failed.get(this.#message!.id);
    if (!this.#message && this.handled === 0 && failed.size > 0) throw [...failed.values()][0];
    if (!this.#message && this.handled > 0) return "handled";
    if (end === "lost")
      throw new LockLostError([this.#rules.name], "the turn ended before the message was handled");
    if (end !== "closed") return "queued";
    return this.#message ? "duplicate" : "handled";
  }

  /** Takes the turn, or finds that it needs none. */
  async #take(): Promise<{ readonly turn: Turn<Value> } | Posted> {
    const { name, options, onFull, clock } = this.#rules;
    const { signal, deadline, standBy = false } = options;
    const settings = { ...this.settings, wait: Math.max(0, this.settings.wait - this.#elapsed()) };
    const protocol = new PostProtocol(settings, name, this.#place, {
      message: this.#isHandled ? undefined : this.#message,
      standBy,
      dropsOldest: onFull === "drop-oldest",
      done: this.#work.done,
      tokens: this.#tokens,
      clock,
    });
    let lock: Lock;
    try {
      lock = await acquire(settings, [name], { signal, deadline }, protocol);
    } catch (error) {
      return this.#withoutTurn(protocol, error);
    }
    this.#message?.onStored();
    const untilDeadline = () => this.#limit - this.#elapsed();
    const rules = { ...this.#rules, signal, untilDeadline };
    return { turn: new Turn(rules, lock, protocol, this.#work) };
  }

  #withoutTurn({ state, wasQueued }: PostProtocol, error: unknown): Posted {
    // Another call has handled it meanwhile.
    const wasStored = this.#message?.position !== undefined;
    if (this.#isHandled || (state === "duplicate" && wasStored)) return { status: "handled", left: 0 };
    if (state === "full") throw new MailboxFullError(this.#rules.name, this.#rules.maxSize);
    if (state === "queued" || state === "duplicate") return { status: state, left: 0 };
    // It stood by for as long as it may: its message is with the holder.
    if (wasQueued && isRedlockError(error)) return { status: "queued", left: 0 };
    throw error;
  }
}
