import type { Message, Posted } from "../../../src/sync/index.ts";
import type { Draw } from "../draw.ts";
import { quorumOf } from "../field.ts";
import type { Mailboxes } from "../wire/mailboxes.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";

/** A message, from its first post to its end. Times are virtual ms; Infinity: never. */
class Letter {
  readonly id: string;
  readonly posted: number;
  /** Posted after the faults. */
  readonly isProbe: boolean;
  /** How many calls have posted it. */
  posts = 1;
  /** When a post of it first returned, or said that it is stored. */
  acknowledged = Infinity;
  /** The turns that it was left with, when a post returned. */
  readonly leftWith = new Set<string>();
  /** When a handler first got it, or it was given up. */
  seen = Infinity;
  /** Its place among all that were handled, and when that was; undefined: it was not. */
  place: number | undefined;
  handledAt = Infinity;
  times = 0;
  hasFailed = false;
  isGivenUp = false;
  /** The turns that have read it. */
  readonly turns: string[] = [];

  constructor(id: string, posted: number, isProbe: boolean) {
    this.id = id;
    this.posted = posted;
    this.isProbe = isProbe;
  }
}

/** Every message of a mailbox. Checks that each is handled, once and in order. */
export class Letters {
  readonly #world: World;
  readonly #wire: Mailboxes;
  /** Whether messages may expire before they are handled. */
  readonly #isForgetful: boolean;
  readonly #all = new Map<string, Letter>();
  /** The turns of calls after the faults that have returned. */
  readonly #over = new Set<string>();
  #handled = 0;

  constructor(world: World, wire: Mailboxes, isForgetful: boolean) {
    this.#world = world;
    this.#wire = wire;
    this.#isForgetful = isForgetful;
  }

  /** The id of a message that was posted before; undefined: there is none. */
  anyId(draw: Draw): string | undefined {
    return draw.pick([...this.#all.keys()]);
  }

  /** A post begins. */
  posted(id: string, { isProbe }: { readonly isProbe: boolean }): void {
    const known = this.#all.get(id);
    if (known) {
      known.posts += 1;
      return;
    }
    this.#world.count("mailbox: messages");
    this.#all.set(id, new Letter(id, this.#world.now, isProbe));
  }

  /** A post says that a message is stored. */
  stored(id: string): void {
    const letter = this.#all.get(id)!;
    letter.acknowledged = Math.min(letter.acknowledged, this.#world.now);
  }

  /** A post returns. */
  acknowledged(process: Process, id: string, status: Posted["status"]): void {
    this.stored(id);
    const letter = this.#all.get(id)!;
    const { stored, isHeld, holder } = this.#wire.lastPost(process, id);
    if (status === "queued") {
      if (holder !== undefined) letter.leftWith.add(holder);
      if (holder !== undefined && this.#over.has(holder)) this.#checkLeft(letter);
      const what = () => `${process.name}: ${id} is said to be queued, and ${stored} endpoints have it`;
      const isTrue = stored >= quorumOf(this.#world.servers.length) && isHeld;
      this.#world.check("what is said of a message is true", isTrue, what);
      return;
    }
    if (this.#isForgetful) return;
    const what = () => `${process.name}: ${id} is said to be ${status}, and nobody has handled it`;
    this.#world.check("what is said of a message is true", this.#isDone(letter), what);
  }

  /** A handler gets a message. */
  read({ id, attempt }: Message<string>, token: string): void {
    const letter = this.#all.get(id)!;
    const world = this.#world;
    letter.seen = Math.min(letter.seen, world.now);
    const others = this.#wire.otherTurns(id, token);
    const often = () => `attempt ${attempt} at ${id}, which has waited in ${others} other turns`;
    world.check("failures of a message are true", attempt - 1 <= others, often);
    if (this.#isForgetful) return;
    const isKnown = this.#wire.shown(id).markedAt < this.#wire.attempt(token)!.sent;
    const known = () => `${id} is read in a turn that was asked for when a quorum knew that it is handled`;
    world.check("a message is handled once", !isKnown, known);
    const isAgain = letter.turns.includes(token);
    world.check("a message is handled once", !isAgain, () => `${id} is read twice in one turn`);
    letter.turns.push(token);
  }

  /** A handler has handled a message. */
  handled(id: string): void {
    const letter = this.#all.get(id)!;
    letter.times += 1;
    if (letter.times > 1) this.#world.count("mailbox: handled again");
    this.#handled += 1;
    letter.place ??= this.#handled;
    letter.handledAt = Math.min(letter.handledAt, this.#world.now);
  }

  /** A handler has failed at a message. */
  failed(id: string): void {
    this.#all.get(id)!.hasFailed = true;
  }

  /** A message has failed too often. */
  givenUp(id: string, attempts: number): void {
    const letter = this.#all.get(id)!;
    letter.isGivenUp = true;
    letter.seen = Math.min(letter.seen, this.#world.now);
    const turns = this.#wire.otherTurns(id, "");
    const often = () => `${id} is given up after ${attempts} attempts in ${turns} turns`;
    this.#world.check("failures of a message are true", attempts <= turns, often);
  }

  /** A call after the faults has returned: it has seen what was left with its turn. */
  over(token: string): void {
    this.#over.add(token);
    for (const letter of this.#all.values()) if (letter.leftWith.has(token)) this.#checkLeft(letter);
  }

  #checkLeft(letter: Letter): void {
    if (this.#isForgetful || !letter.isProbe) return;
    const isSeen = letter.seen < Infinity || this.#wire.shown(letter.id).droppedAt < Infinity;
    const what = () => `${letter.id} was left with a turn that has ended, and nobody has seen it`;
    this.#world.check("a close leaves nothing behind", isSeen, what);
  }

  /** All posts after the faults have returned. */
  checkNothingWaits(): void {
    if (this.#isForgetful) return;
    for (const letter of this.#all.values()) {
      if (!letter.isProbe) continue;
      const left = () => `${letter.id} waits although all calls have returned`;
      this.#world.check("a close leaves nothing behind", this.#isDone(letter), left);
      const again = () => `${letter.id} was handled ${letter.times} times`;
      this.#world.check("a message is handled once", letter.times <= 1, again);
    }
  }

  checkAtEnd(): void {
    if (this.#isForgetful) return;
    const all = [...this.#all.values()].filter(({ acknowledged }) => acknowledged < Infinity);
    for (const letter of all) {
      const lost = () => `${letter.id} was acknowledged at ${letter.acknowledged.toFixed()}, and not handled`;
      this.#world.check("an acknowledged message is not lost", this.#isDone(letter), lost);
      for (const turn of letter.leftWith) this.#checkClose(letter, turn);
    }
    this.#checkOrder(
      all.filter((letter) => letter.place !== undefined && !letter.hasFailed && !letter.isGivenUp),
    );
  }

  /** Who has let its turn go has seen what was left with it. */
  #checkClose(letter: Letter, turn: string): void {
    const closed = this.#wire.attempt(turn)?.closedAt;
    if (closed === undefined) return;
    const seen = Math.min(letter.seen, this.#wire.shown(letter.id).droppedAt);
    const what = () =>
      `${letter.id} was left with a turn that ended at ${closed.toFixed()}, and seen at ${seen.toFixed()}`;
    this.#world.check("a close leaves nothing behind", seen <= closed, what);
  }

  #checkOrder(letters: readonly Letter[]): void {
    const inOrder = [...letters].sort((one, other) => one.place! - other.place!);
    // The first of those that were handled later.
    let earliest: Letter | undefined;
    for (const letter of [...inOrder].reverse()) {
      const next = earliest;
      // A holder that takes up a message while it is being posted may take up an old stamp, if its poster's clock is behind; what
      // was posted twice may have that of a post that failed.
      const takenUpAt = Math.min(letter.handledAt, this.#wire.shown(letter.id).putAt);
      if (next && letter.acknowledged <= takenUpAt && letter.posts === 1) {
        const what = () =>
          `${letter.id}, posted at ${letter.posted.toFixed()}, was handled before ${next.id}, acknowledged at ${next.acknowledged.toFixed()}`;
        this.#world.check("messages keep their order", letter.posted <= next.acknowledged, what);
      }
      if (!earliest || letter.acknowledged < earliest.acknowledged) earliest = letter;
    }
  }

  #isDone({ id, times, isGivenUp }: Letter): boolean {
    return times > 0 || isGivenUp || this.#wire.shown(id).droppedAt < Infinity;
  }
}
