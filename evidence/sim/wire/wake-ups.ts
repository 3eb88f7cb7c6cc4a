import { entryOf } from "../field.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";

/** A stream, as its client sees it. Times are ms for which its process has run. */
export interface StreamRecord {
  readonly process: Process;
  readonly channel: string;
  readonly openedAt: number;
  /** Whether the client has read that it stands. */
  hasStood: boolean;
  isOpen: boolean;
}

/** What a call that waits has been told to keep to, in ms by its process's clocks. */
export interface WaitingLimits {
  readonly timeout: number;
  readonly backoff: { readonly min: number; readonly max: number };
  /** ms after which it asks whatever messages come. Default 30 000. */
  readonly longestPause?: number | undefined;
  /** How many rounds may follow one another without a pause. */
  readonly rounds: number;
}

/** A call that may wait, and what its process has done since it began. Times are ms for which its process has run. */
class Waiting {
  readonly process: Process;
  readonly limits: WaitingLimits;
  readonly began: number;
  readonly disturbances: number;
  /** When it has last sent a request to acquire; and how many it has sent. */
  askedAt: number;
  asked = 0;
  /** What its last round was to store, whether an endpoint has refused that, and whether one has failed. */
  value = "";
  isRefused = false;
  hasFailed = false;
  /** When a message came last that the library had published or anybody had forged; and how many came. */
  toldAt: number;
  told = 0;
  /** Since when its process has had no stream; undefined: it has one. */
  blindSince: number | undefined;
  /** Whether it had no stream at any time since it asked. */
  wasBlind = true;
  /** When a stream stood after which it has not asked yet; undefined: none has, or it did not wait for messages. */
  stoodAt: number | undefined;

  constructor(process: Process, limits: WaitingLimits, now: number) {
    this.process = process;
    this.limits = limits;
    this.disturbances = process.disturbances;
    this.began = now;
    this.askedAt = now;
    this.toldAt = now;
    this.blindSince = now;
  }
}

// docs/waiting.md promises these, in ms by the clock of the process that waits.
const longestPoll = 2_000;
const maxSleep = 30_000;

/** ms for timers that fire late, and for what happens after them. */
const tolerance = 60;

/**
 * Observes streams, and calls that wait with `wakeUp`. Checks that each asks again in time whatever becomes of its streams
 * and messages, that none asks without a reason, and that no stream outlives the call that waits by it.
 */
export class WakeUps {
  readonly #world: World;
  readonly #listening = new Set<Process>();
  readonly #open = new Map<Process, Set<StreamRecord>>();
  /** By process: the call that it waits in. Processes that probe make several, and are not observed. */
  readonly #waiting = new Map<Process, Waiting>();

  constructor(world: World) {
    this.#world = world;
  }

  /** The client of a process has `wakeUp`. */
  listens(process: Process): void {
    this.#listening.add(process);
  }

  /** A process begins a call that may wait. The returned function ends it. */
  begin(process: Process, limits: WaitingLimits): () => void {
    if (!this.#listening.has(process)) return () => undefined;
    const waiting = new Waiting(process, limits, this.#timeOf(process));
    this.#waiting.set(process, waiting);
    return () => {
      if (this.#waiting.get(process) === waiting) this.served(process);
    };
  }

  /** A process waits no longer: it has what it has waited for, or its call has ended. */
  served(process: Process): void {
    const waiting = this.#waiting.get(process);
    if (!waiting) return;
    this.#waiting.delete(process);
    // The last rollbacks end before the call does.
    this.#checkAsks(waiting, waiting.limits.rounds);
    this.#checkStorm(waiting);
  }

  /** A process sends a request to acquire. */
  asked(process: Process, value: string): void {
    const waiting = this.#waiting.get(process);
    if (!waiting) return;
    this.#checkAsks(waiting, 2);
    waiting.askedAt = this.#timeOf(process);
    waiting.asked += 1;
    waiting.stoodAt = undefined;
    waiting.wasBlind = waiting.blindSince !== undefined;
    if (waiting.value !== value) Object.assign(waiting, { value, isRefused: false, hasFailed: false });
  }

  /** A process got no usable answer to a request to acquire. */
  failed(process: Process): void {
    const waiting = this.#waiting.get(process);
    if (waiting) waiting.hasFailed = true;
  }

  /** A process was refused what it had asked for. */
  refused(process: Process, value: string): void {
    const waiting = this.#waiting.get(process);
    if (waiting?.value === value) waiting.isRefused = true;
  }

  /** A process subscribes. */
  opened(process: Process, channel: string): StreamRecord {
    const openedAt = this.#timeOf(process);
    const stream: StreamRecord = { process, channel, openedAt, hasStood: false, isOpen: true };
    entryOf(this.#open, process, () => new Set()).add(stream);
    const waiting = this.#waiting.get(process);
    if (!waiting) return stream;
    this.#checkAsks(waiting, 2);
    waiting.blindSince = undefined;
    return stream;
  }

  /** A process has read that its subscription stands. */
  stood(stream: StreamRecord): void {
    this.#world.count("stream stood");
    stream.hasStood = true;
    const waiting = this.#waiting.get(stream.process);
    if (!waiting) return;
    this.#tell(waiting);
    // Where endpoints fail, it pauses as its backoff says, with or without streams.
    const listens = waiting.isRefused && !waiting.hasFailed;
    if (listens) waiting.stoodAt ??= waiting.toldAt;
  }

  /** A process has read a message. */
  told(process: Process, payload: string): void {
    this.#world.count("message read");
    const waiting = this.#waiting.get(process);
    // Everything else is no message of the library, and must change nothing.
    const [line = ""] = payload.split("\n");
    if (!waiting || !/^[\w:]{1,64}$/.test(line)) return;
    this.#tell(waiting);
    // Somebody else asks.
    waiting.stoodAt = undefined;
  }

  #tell(waiting: Waiting): void {
    this.#checkAsks(waiting, 2);
    waiting.toldAt = this.#timeOf(waiting.process);
    waiting.told += 1;
  }

  /** A stream has ended, for its client. */
  closed(stream: StreamRecord): void {
    const { process, channel, openedAt, hasStood } = stream;
    if (!stream.isOpen) return;
    stream.isOpen = false;
    const streams = this.#open.get(process)!;
    streams.delete(stream);
    const waiting = this.#waiting.get(process);
    if (!waiting) return;
    const now = this.#timeOf(process);
    if (!hasStood) {
      const took = (now - openedAt) * process.rate;
      const what = () => `${process.name} waited for ${took.toFixed()} ms for a stream of ${channel}`;
      this.#world.check("streams end", took <= waiting.limits.timeout + tolerance, what);
    }
    if (streams.size > 0) return;
    waiting.blindSince = now;
    waiting.wasBlind = true;
  }

  isListening(process: Process): boolean {
    return this.#listening.has(process);
  }

  /** No call of a process is under way: then it must have no stream. */
  checkClosed(process: Process): void {
    const open = [...(this.#open.get(process) ?? [])];
    const what = () => `${process.name} waits for nothing, and still reads ${open.map((one) => one.channel)}`;
    this.#world.check("streams end", open.length === 0, what);
  }

  /**
   * A call that waits has asked recently enough.
   *
   * @param rounds how many rounds may have followed its last request
   */
  #checkAsks(waiting: Waiting, rounds: number): void {
    const { process, askedAt, toldAt, stoodAt, blindSince, wasBlind } = waiting;
    const { timeout, backoff, longestPause = maxSleep } = waiting.limits;
    const now = this.#timeOf(process);
    const roundEnd = askedAt + (rounds * timeout) / process.rate;
    const passed = (since: number) => (now - since) * process.rate - tolerance;
    const hasListened = waiting.isRefused && !waiting.hasFailed && !wasBlind;
    const poll = hasListened ? longestPoll : Math.max(longestPoll, backoff.max);
    const bounds: [why: string, ms: number, most: number][] = [
      ["in any case", passed(roundEnd), longestPause],
      ["without a message", passed(Math.max(roundEnd, toldAt)), poll],
    ];
    if (stoodAt !== undefined)
      bounds.push(["after its stream stood", passed(stoodAt), rounds * timeout + backoff.max]);
    if (blindSince !== undefined)
      bounds.push(["without a stream", passed(Math.max(roundEnd, blindSince)), backoff.max]);
    const broken = bounds.find(([, ms, most]) => ms > most);
    const what = () =>
      `${process.name} has not asked for ${broken![1].toFixed()} ms; ${broken![0]} it asks after ${broken![2].toFixed()} ms`;
    this.#world.check("waiters ask", broken === undefined, what);
  }

  /** A call has asked only because a message had come, or a stream had ended, or a pause had passed. */
  #checkStorm({ process, limits, began, asked, told, disturbances }: Waiting): void {
    const world = this.#world;
    const { rounds, backoff } = limits;
    const length = (this.#timeOf(process) - began) * process.rate;
    const pauses = length / Math.min(1_000, backoff.min);
    // By a message a waiter asks up to three times: in its turn, in another's, and when it got a part. Each round may send
    // a script twice.
    const reasons = rounds + 3 * told + pauses + process.disturbances - disturbances;
    const most = 2 * reasons * world.servers.length;
    const what = () =>
      `${process.name} sent ${asked} requests in ${length.toFixed()} ms, with ${told} messages; at most ${most.toFixed()}`;
    world.check("requests are bounded", asked <= most, what);
  }

  /** ms for which a process has run. */
  #timeOf(process: Process): number {
    return this.#world.now - process.pausedFor;
  }
}
