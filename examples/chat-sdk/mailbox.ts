// A state adapter of Chat SDK whose turn of a thread, and whose queue, are a `Mailbox`. For `concurrency: "queue"`: what arrives
// while the holder looks at its queue for the last time is not left behind. Everything else stays in the adapter it is given.

import type { Lock as ChatLock, QueueEntry, StateAdapter } from "chat";
import type { Redlock } from "redlock-edge";
import { forceRelease, Mailbox, type MailboxHandler, type MailboxTurn } from "redlock-edge/sync";

/** What waits in a mailbox: an entry of Chat SDK's queue, or null, by which `acquireLock` takes the turn. */
type Value = QueueEntry | null;

/** Replaces the locks and queues of a state adapter, and returns that adapter. */
export function withMailbox(state: StateAdapter, redlock: Redlock): StateAdapter {
  const held = new Map<string, Held>();
  const nameOf = (threadId: string) => `chat:${threadId}`;
  const mailboxOf = (threadId: string, options: { readonly ttl?: number; readonly maxSize?: number } = {}) =>
    new Mailbox<Value>(redlock, nameOf(threadId), { ...options, onFull: "drop-oldest" });
  const ownOf = ({ threadId, token }: ChatLock) => {
    const own = held.get(threadId);
    return own?.token === token ? own : undefined;
  };

  const own: Pick<
    StateAdapter,
    "acquireLock" | "extendLock" | "releaseLock" | "forceReleaseLock" | "enqueue" | "dequeue" | "queueDepth"
  > = {
    async acquireLock(threadId, ttl) {
      const mailbox = mailboxOf(threadId, { ttl });
      if ((await mailbox.inspect()).isHeld) return null;
      const turn = new Held();
      const { token } = turn;
      const ended = mailbox.post({ id: `turn:${token}`, value: null }, turn.handle).finally(() => {
        turn.end();
        if (held.get(threadId) === turn) held.delete(threadId);
      });
      // If another instance was faster, the null waits in its queue, and it leaves that out.
      if (!(await Promise.race([turn.begun, ended.then(() => false)]))) return null;
      held.set(threadId, turn);
      ended.catch((error) => console.error(error));
      return { threadId, token, expiresAt: Date.now() + turn.remaining() };
    },

    /** The mailbox extends its turn itself. */
    async extendLock(lock) {
      return (ownOf(lock)?.remaining() ?? 0) > 0;
    },

    async releaseLock(lock) {
      await ownOf(lock)?.release();
    },

    async forceReleaseLock(threadId) {
      await forceRelease(redlock, "Mailbox", nameOf(threadId));
    },

    async enqueue(threadId, entry, maxSize) {
      // If the holder has ended meanwhile, this takes the turn: it reads nothing, so the message waits for the next one.
      const leave = () => undefined;
      const message = { id: entry.message.id, value: entry };
      // The nulls are in the queue, too.
      await mailboxOf(threadId, { maxSize: 2 * maxSize }).post(message, leave);
      return own.queueDepth(threadId);
    },

    async dequeue(threadId) {
      return (await held.get(threadId)?.next()) ?? null;
    },

    async queueDepth(threadId) {
      const { waiting } = await mailboxOf(threadId).inspect();
      return waiting - (held.get(threadId)?.inHand ?? 0);
    },
  };
  return Object.assign(state, own);
}

/** A turn of this instance. Chat SDK asks for one message after another, until it gets null. */
class Held {
  readonly token = crypto.randomUUID();
  /** True once it has the turn. */
  readonly begun: Promise<true>;
  /** How many messages it has taken from the mailbox, which are not handled yet. */
  inHand = 0;
  readonly #begin: (value: true) => void;
  /** Called when it has the turn no more. */
  readonly end: () => void;
  readonly #ended: Promise<void>;
  #turn: MailboxTurn | undefined;
  #entries: QueueEntry[] = [];
  #hasGiven = false;
  #isReleased = false;
  /** Lets the handler read on: what it has given is handled. */
  #readOn: () => void = () => undefined;
  /** Called when a batch is there. */
  #arrived: () => void = () => undefined;

  constructor() {
    [this.begun, this.#begin] = gate<true>();
    [this.#ended, this.end] = gate<void>();
  }

  readonly handle: MailboxHandler<Value> = async (messages, turn) => {
    this.#turn = turn;
    if (this.#isReleased) return;
    for await (const batch of messages.batches()) {
      this.inHand = batch.length;
      this.#entries = batch.flatMap(({ value }) => value ?? []);
      const [handled, readOn] = gate<void>();
      this.#readOn = readOn;
      this.#begin(true);
      this.#arrived();
      await handled;
      this.inHand = 0;
      if (this.#isReleased) return;
    }
  };

  remaining(): number {
    return this.#turn?.remaining() ?? 0;
  }

  /**
   * The next message. Chat SDK takes messages until it gets undefined, handles them, and takes the next ones. If there are none
   * then, it releases the lock: so that look is the one that ends the turn, in one step, unless a message is there.
   */
  async next(): Promise<QueueEntry | undefined> {
    while (this.#entries.length === 0) {
      if (this.#hasGiven) {
        this.#hasGiven = false;
        return undefined;
      }
      const [hasArrived, arrive] = gate<true>();
      this.#arrived = () => arrive(true);
      this.#readOn();
      if (!(await Promise.race([hasArrived, this.#ended]))) return undefined;
    }
    this.#hasGiven = true;
    return this.#entries.shift();
  }

  async release(): Promise<void> {
    this.#isReleased = true;
    this.#readOn();
    await this.#ended;
  }
}

/** A promise, and what resolves it. */
function gate<Value>(): [passed: Promise<Value>, open: (value: Value) => void] {
  let open!: (value: Value) => void;
  const passed = new Promise<Value>((resolve) => {
    open = resolve;
  });
  return [passed, open];
}
