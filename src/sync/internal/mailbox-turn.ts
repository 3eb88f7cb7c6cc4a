import { refuseProperty } from "../../check/foreign-names.ts";
import { reasonOf } from "../../errors/errors.ts";
import { emitOrWarn } from "../../lock/events.ts";
import type { Lock } from "../../lock/lock.ts";
import type { Settings } from "../../lock/options.ts";
import { announce } from "../../lock/protocol.ts";
import { runRound } from "../../quorum/round.ts";
import { quorumOf } from "../../quorum/tally.ts";
import { stopwatch } from "../../runtime/runtime.ts";
import { warnOnceAMinute } from "../../runtime/warn.ts";
import { type Entry, type View, viewOf } from "./mailbox-place.ts";
import { mailboxWaiter, type PostProtocol } from "./mailbox-protocol.ts";

/** A message of a mailbox, as its handler gets it. */
export interface Message<Value> {
  /** Identifies it: a second post with the same id is a duplicate, for as long as the id is remembered. */
  readonly id: string;
  readonly value: Value;
  /** 1 at first, and one more after each failure. */
  readonly attempt: number;
}

/** A message that has failed too often. */
export interface FailedMessage<Value> extends Omit<Message<Value>, "attempt"> {
  /** How often it has failed. */
  readonly attempts: number;
  /** What the handler has thrown. Undefined if it was not thrown in this process, for example because the other one has died. */
  readonly error: unknown;
}

/**
 * The messages that wait, in order, and those that arrive meanwhile. A message is handled as soon as the next one is read, or
 * the handler returns.
 */
export interface Messages<Value> extends AsyncIterable<Message<Value>> {
  /**
   * All messages that wait, 32 at most, then all that have arrived meanwhile, and so on. For a handler that answers several
   * messages at once. A batch is handled or fails as a whole.
   */
  batches(): AsyncIterable<readonly Message<Value>[]>;
}

/** The turn, as a handler gets it. */
export interface MailboxTurn {
  /** Larger than the fence of every earlier turn. Pass it to your database, so that it can refuse the write of an earlier turn. */
  readonly fence: number;
  /** Aborts when the turn is lost: another call may have it, and handles the current message again. */
  readonly signal: AbortSignal;
  /** For how many ms the turn is still valid. It is extended while the handler runs. */
  remaining(): number;
}

/**
 * Handles messages. It is called again if messages have arrived since it returned. If it returns without having read one, the
 * turn ends, and the messages stay. If it has never asked for one, the event `messageFailed` says so.
 */
export type MailboxHandler<Value> = (
  messages: Messages<Value>,
  turn: MailboxTurn,
) => Promise<unknown> | unknown;

/**
 * How a turn has ended: nothing waits; it had to stop, or the handler did; it was held for so long that another one is to be
 * taken; it is lost.
 */
export type TurnEnd = "closed" | "stopped" | "long" | "lost";

/** What one call has done, in all of its turns. */
export interface Work {
  /** Ids that it has handled, and that no quorum has been told of. */
  readonly done: Set<string>;
  /** The errors of messages that it leaves to another turn, or has given up. */
  readonly failed: Map<string, unknown>;
  /** All ids that it has handled. */
  readonly handled: Set<string>;
}

/** What a turn depends on. */
export interface TurnRules<Value> {
  readonly settings: Settings;
  readonly name: string;
  readonly handler: MailboxHandler<Value>;
  readonly maxAttempts: number;
  readonly onFailed?: ((message: FailedMessage<Value>) => Promise<unknown> | unknown) | undefined;
  /** ms until no message is to be begun any more. Infinity: there is no deadline. */
  readonly untilDeadline: () => number;
  readonly signal: AbortSignal | undefined;
}

/** A turn: its holder handles messages in order, until nothing waits. */
export class Turn<Value> {
  readonly #rules: TurnRules<Value>;
  readonly #lock: Lock;
  readonly #protocol: PostProtocol;
  readonly #work: Work;
  #view: View;
  #steps = 0;
  /** Those that the handler has, or has had last. */
  #current: readonly Entry[] = [];
  /** The strays that it has put at the endpoints. Each step names them, because an endpoint shows only its first messages. */
  #puts: readonly Entry[] = [];
  /** Failures that no endpoint has been told of. */
  #failures: string[] = [];
  #end: TurnEnd | undefined;
  /** ms that the longest message has taken so far. */
  #longest = 0;
  #held: () => number;
  #sinceRead: () => number = () => 0;

  constructor(rules: TurnRules<Value>, lock: Lock, protocol: PostProtocol, work: Work) {
    this.#rules = rules;
    this.#lock = lock;
    this.#protocol = protocol;
    this.#view = protocol.view;
    this.#work = work;
    this.#held = stopwatch(rules.settings.runtime);
  }

  /** How many messages, as far as it knows, wait for another turn. */
  get left(): number {
    const { ready, strays } = this.#view;
    return [...ready, ...strays].filter(({ id }) => !this.#work.done.has(id)).length;
  }

  /** Calls the handler until nothing waits, or it must stop; then gives the turn back. */
  async serve(): Promise<TurnEnd> {
    while (!this.#mustStop()) {
      const { ready, strays } = this.#view;
      if (this.#fresh(ready).length > 0) await this.#callHandler();
      else await this.#step(this.#fresh(strays).length === 0);
    }
    await this.#lock.release();
    return this.#end!;
  }

  /** Calls the handler once. It reads as many messages as it likes. */
  async #callHandler(): Promise<void> {
    let hasRead = false;
    let hasAsked = false;
    let isOver = false;
    const read = async (most: number): Promise<readonly Message<Value>[]> => {
      hasAsked = true;
      const entries = isOver ? [] : await this.#read(most);
      hasRead ||= entries.length > 0;
      return entries.map((entry) => messageOf<Value>(entry));
    };
    const lock = this.#lock;
    try {
      await this.#rules.handler(messagesOf(read), {
        get signal() {
          return lock.signal;
        },
        fence: lock.fence!,
        remaining: () => lock.remaining(),
      });
      isOver = true;
      // Only what it has given up was there to read.
      const [first] = hasRead ? [] : this.#fresh(this.#view.ready);
      if (first) this.#end ??= "stopped";
      if (first && !hasAsked && !this.#hasBegun) this.#report(first, unreadError());
      this.#finish();
    } catch (error) {
      isOver = true;
      const [first] = this.#fresh(this.#view.ready);
      const entries = this.#current.length > 0 ? this.#current : first ? [first] : [];
      this.#current = [];
      if (entries.length === 0) this.#end ??= "stopped";
      for (const entry of entries) await this.#fail(entry, error);
    }
  }

  /** Whether the handler has read a message in this call: if it leaves the others unread, it may mean to. */
  get #hasBegun(): boolean {
    return this.#work.handled.size + this.#work.failed.size > 0;
  }

  /** The next messages in order; none if nothing waits, or it must stop. What was read before is done. */
  async #read(most: number): Promise<readonly Entry[]> {
    const isLater = this.#current.length > 0;
    this.#finish();
    // What the turn ends with says that the last one is done.
    if (isLater && this.#fresh(this.#view.ready).length > 0 && !this.#mustStop()) await this.#step(false);
    for (;;) {
      if (this.#mustStop()) return [];
      // One that too few endpoints have may be older than the others.
      if (this.#fresh(this.#view.strays).length > 0) {
        await this.#step(false);
        continue;
      }
      const ready = this.#fresh(this.#view.ready);
      const dead = ready.filter(({ failures }) => failures >= this.#rules.maxAttempts);
      for (const entry of dead) await this.#giveUp(entry, undefined);
      if (dead.length > 0) continue;
      this.#current = ready.slice(0, most);
      this.#sinceRead = stopwatch(this.#rules.settings.runtime);
      return this.#current;
    }
  }

  /** Those that this call has neither handled nor failed at. */
  #fresh(entries: readonly Entry[]): Entry[] {
    const { done, failed } = this.#work;
    return entries.filter(({ id }) => !done.has(id) && !failed.has(id));
  }

  /** The handler is done with what it has read, unless the turn was lost: then it may have noticed, and left it. */
  #finish(): void {
    const entries = this.#current;
    this.#current = [];
    if (entries.length > 0) this.#longest = Math.max(this.#longest, this.#sinceRead());
    if (this.#lock.remaining() <= 0) return;
    for (const { id } of entries) {
      this.#work.done.add(id);
      this.#work.handled.add(id);
    }
  }

  /** The handler has failed at a message: it is left to another turn, or given up. */
  async #fail(entry: Entry, error: unknown): Promise<void> {
    const attempts = entry.failures + 1;
    this.#work.failed.set(entry.id, error);
    this.#report(entry, error);
    if (attempts >= this.#rules.maxAttempts) await this.#giveUp({ ...entry, failures: attempts }, error);
    else this.#failures.push(entry.id);
  }

  /** Nobody else may learn of it: the message may be another call's. */
  #report({ id, failures }: Entry, error: unknown): void {
    const { settings, name } = this.#rules;
    const attempts = failures + 1;
    emitOrWarn(
      settings,
      { type: "messageFailed", resources: [name], id, attempts, error },
      `a message of mailbox ${JSON.stringify(name)} failed (attempt ${attempts}): ${reasonOf(error)}`,
    );
  }

  /** Forgets a message that has failed too often, once `onFailed` has seen it. */
  async #giveUp(entry: Entry, error: unknown): Promise<void> {
    const { id, failures } = entry;
    const { done, failed } = this.#work;
    const { onFailed, name, settings } = this.#rules;
    const failure = `the message ${JSON.stringify(id)} has failed ${failures} times`;
    failed.set(id, error ?? new Error(failure));
    try {
      const value: Value = JSON.parse(entry.json);
      if (onFailed) await onFailed({ id, value, attempts: failures, error });
      else {
        const line = `${failure}, and mailbox ${JSON.stringify(name)} drops it: to keep it, set onFailed`;
        warnOnceAMinute(settings.runtime, "dropped", line);
      }
      done.add(id);
    } catch {
      // It stays, and the next turn tries that again.
    }
  }

  /** Whether no message may be begun. */
  #mustStop(): boolean {
    const { untilDeadline, settings, signal } = this.#rules;
    if (this.#end) return true;
    if (this.#lock.remaining() <= 0) this.#end = "lost";
    // As long as the longest so far, and the time to give the turn back.
    else if (untilDeadline() < this.#longest + 2 * settings.timeout || signal?.aborted) this.#end = "stopped";
    // So that each message has at least half of the time that the turn may be held.
    else if (this.#held() > settings.maxHold / 2) this.#end = "long";
    return this.#end !== undefined;
  }

  /** Tells the endpoints of its work, and looks for messages. With `closes`, they let the turn go in the same step if none waits. */
  async #step(closes: boolean): Promise<void> {
    const { settings, name } = this.#rules;
    const { done, failed } = this.#work;
    this.#steps += 1;
    const told = [...done];
    const failures = this.#failures;
    this.#puts = this.#fresh([...this.#puts, ...this.#view.strays]);
    const puts = this.#puts;
    const left = [...failures, ...[...failed.keys()].filter((id) => !failures.includes(id) && !done.has(id))];
    const step = { number: this.#steps, closes, done: told, puts, left, failed: failures.length };
    const round = runRound(settings, (call) => {
      const answer = this.#protocol.step(call, this.#lock.token, step);
      // Those that stand by: one of them has posted what is done.
      if (closes || told.length > 0) announce(settings, call, mailboxWaiter, [name]);
      return answer;
    });
    const result = await round.result;
    if (closes && result === "granted") {
      this.#end = "closed";
      this.#protocol.closed = { token: this.#lock.token, round };
      return;
    }
    // One that has lost the turn, and one at which something waits, decide the round before the others have answered.
    const openAnswers = () => round.answers().filter(({ state }) => state === "open");
    if (openAnswers().length < quorumOf(settings.endpoints.length)) await round.done;
    const open = openAnswers();
    if (open.length < quorumOf(settings.endpoints.length)) {
      // Some have let it go and others not, or nobody knows: the turn is not whole any more.
      this.#end = "lost";
      return;
    }
    this.#failures = [];
    for (const { handled = [] } of open) for (const id of handled) done.add(id);
    this.#view = viewOf(open, settings.endpoints.length, puts);
    const waiting = new Set([...this.#view.ready, ...this.#view.strays].map(({ id }) => id));
    // A quorum remembers the others.
    for (const id of told) if (!waiting.has(id)) done.delete(id);
    if (closes && !(await this.#extends())) this.#end = "lost";
  }

  /**
   * Extends the turn after a close that was refused. The validity so far may come from an endpoint that has closed, and the others
   * may keep the turn for a shorter time.
   */
  #extends(): Promise<boolean> {
    return this.#lock.extend().then(
      () => true,
      () => false,
    );
  }
}

function unreadError(): Error {
  return new Error(
    "the handler returned without reading a message, so none counts as handled: use for await (const { id, value } of messages)",
  );
}

function messageOf<Value>({ id, json, failures }: Entry): Message<Value> {
  return { id, value: JSON.parse(json), attempt: failures + 1 };
}

/** What a handler reads from. */
function messagesOf<Value>(read: (most: number) => Promise<readonly Message<Value>[]>): Messages<Value> {
  async function* batches(most: number) {
    for (let batch = await read(most); batch.length > 0; batch = await read(most)) yield batch;
  }
  const messages = {
    async *[Symbol.asyncIterator]() {
      for await (const [message] of batches(1)) yield message!;
    },
    batches: () => batches(Number.MAX_SAFE_INTEGER),
  };
  // A handler that takes one message, or an array of them, would fail at each message.
  for (const name of ["id", "value", "length", "map", "forEach", Symbol.iterator]) {
    refuseProperty("messages", messages, name, "for await (const { id, value } of messages)");
  }
  return messages;
}
