import {
  type FailedMessage,
  Mailbox,
  type MailboxHandler,
  type MailboxOptions,
  type MailboxTurn,
  type Message,
  type Messages,
  type Posted,
} from "../../../src/sync/index.ts";
import { Holds } from "../checks/holds.ts";
import { Letters } from "../checks/letters.ts";
import type { Draw } from "../draw.ts";
import { keyOf } from "../field.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import type { Outcome } from "./calls.ts";
import { type DrawnOptions, drawOptions, drawSignal } from "./options.ts";
import type { Workload } from "./workload.ts";

const name = "inbox";
const key = keyOf("mailbox", name);

const codes = ["LOCK_HELD", "NO_QUORUM", "LOCK_LOST", "MAILBOX_FULL"] as const;

/** How many rounds and rollbacks may follow once the waiting is over. */
const rounds = 10;

/** How many messages each process posts after the faults. */
const probes = 5;

/** A message to post. */
interface NewMessage {
  readonly id: string;
  readonly value: string;
}

/** The handler has failed, or has left a turn that is lost. */
class Failed extends Error {}

/** How a handler behaves. */
interface Manner {
  readonly reads: "each" | "batches" | "nothing";
  /** The probabilities that it fails at a message, and that it returns after one although others wait. */
  readonly fails: number;
  readonly breaks: number;
  /** ms for each message, at most. */
  readonly length: number;
  /** Whether it returns where its turn is lost. Else it throws. */
  readonly isQuiet: boolean;
  /** The probability that its process dies at a message. */
  readonly dies: number;
}

/** One call. */
interface MailboxCall {
  readonly invoked: number;
  /** By the process's wall clock; Infinity: there is none. */
  readonly deadline: number;
  readonly disturbances: number;
  /** Since when its handler is called; undefined: it was not. */
  began: number | undefined;
}

/** Processes that post to one mailbox, and handle what is there. */
export class MailboxWorkload implements Workload {
  readonly blockingKeys: readonly string[] = ["redlock:mailbox:*"];
  // The probes handle what is left, one message after another, with an endpoint that is silent.
  readonly patience = 150_000;
  readonly #shared: SharedContext;
  readonly #world: World;
  readonly holds: Holds;
  readonly #letters: Letters;
  readonly #rules: MailboxOptions<string>;
  /** Whether handlers fail, while there are faults. */
  readonly #isFlaky: boolean;
  /** Whether most handlers read nothing, while there are faults. */
  readonly #isLazy: boolean;
  readonly #slowest: number;
  #posted = 0;
  #probing = 0;

  constructor(shared: SharedContext, draw: Draw) {
    const { world, scenario, wire } = shared;
    const { ttl } = scenario;
    this.#shared = shared;
    this.#world = world;
    this.holds = new Holds(world, "one turn at a time");
    // Less than a turn may take.
    const retention = draw.chance(0.1) ? Math.max(1_000, 2 * ttl) : undefined;
    this.#letters = new Letters(world, wire.mailboxes, retention !== undefined);
    this.#isFlaky = draw.chance(0.4);
    this.#isLazy = draw.chance(0.15);
    this.#slowest = draw.pick([0, 0.02, 0.1, 0.1, 0.6]) * ttl;
    this.#rules = {
      ttl: 2 * ttl,
      maxSize: draw.pick([2, 100, 100, 100]),
      onFull: draw.pick(["refuse", "drop-oldest"]),
      maxAttempts: draw.pick([undefined, undefined, 1, 2]),
      maxHold: draw.pick([3 * ttl, 300_000]),
      retention,
      onFailed: (message) => this.#giveUp(message),
      // Handlers fail as they are drawn to, and the console needs no line of it.
      onEvent: () => undefined,
    };
  }

  async perform(actor: Actor): Promise<void> {
    const { draw } = actor;
    if (draw.chance(0.1)) {
      await this.#work(actor);
      return;
    }
    const id = draw.chance(0.15) ? this.#letters.anyId(draw) : undefined;
    const message = this.#newMessage(actor.process, id);
    const isQuick = draw.chance(0.3);
    for (let tries = draw.integer(1, 3); tries > 0; tries -= 1) {
      const outcome = await this.#work(actor, message);
      if ("value" in outcome) break;
      await actor.sleep(draw.between(0, 20));
    }
    // Others arrive while somebody handles the first ones.
    if (isQuick) await this.#work(actor, this.#newMessage(actor.process));
  }

  /** Posts messages at the same time as the others. When all calls have returned, nothing is left. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { draw } = actor;
    this.#probing += 1;
    for (let count = 0; count < probes; count += 1) {
      await actor.sleep(draw.pick([0, draw.between(0, 40)]));
      await this.#probeOnce(actor, bound);
    }
    this.#probing -= 1;
    if (this.#probing > 0) return;
    this.#letters.checkNothingWaits();
    await this.#call(actor, {
      what: "probe: drain",
      bound,
      run: (call) => {
        const mailbox = new Mailbox<string>(actor.redlock, name, this.#rules);
        return mailbox.drain(this.#handler(actor, call, kind), { ...patient, wait: 10 * bound });
      },
    });
  }

  checkAtEnd(): void {
    this.#letters.checkAtEnd();
    this.#shared.wire.mailboxes.checkAtEnd();
  }

  #newMessage({ name: by }: Process, known?: string): NewMessage {
    this.#posted += 1;
    return { id: known ?? `${by}-${this.#posted}`, value: `of ${by}` };
  }

  async #probeOnce(actor: Actor, bound: number): Promise<void> {
    const { process, draw, redlock, scenario } = actor;
    const message = this.#newMessage(process);
    const mailbox = new Mailbox<string>(redlock, name, this.#rules);
    const manner = { ...kind, reads: draw.pick(["each", "batches"] as const), length: draw.pick([0, 10]) };
    const standBy = scenario.wakeUps !== undefined && draw.chance(0.5);
    this.#letters.posted(message.id, { isProbe: true });
    for (;;) {
      const outcome = await this.#call(actor, {
        what: `probe: post ${message.id}${standBy ? " and stand by" : ""}`,
        bound,
        run: async (call) => {
          const handler = this.#handler(actor, call, manner);
          const posted = await mailbox.post(message, handler, { ...patient, standBy, wait: 10 * bound });
          if (standBy && call.began === undefined) this.#checkWoken(actor, message.id);
          return posted;
        },
      });
      this.#letters.over(this.#shared.wire.mailboxes.lastAttempt(process));
      if ("value" in outcome) return this.#letters.acknowledged(process, message.id, outcome.value.status);
      // It is full.
      await actor.sleep(50);
    }
  }

  /** A call that stands by, and has handled nothing itself, returns as soon as a message says that others have. */
  #checkWoken({ process, wakeUps, scenario, wire, world }: Actor, id: string): void {
    const isGood = scenario.wakeUps?.isLasting === false && !scenario.silentMinority;
    const areAllHeard = world.processes.every((each) => wakeUps.isListening(each));
    // What is dropped is not announced.
    const { droppedAt, markedAt } = wire.mailboxes.shown(id);
    if (!isGood || !areAllHeard || droppedAt < Infinity) return;
    world.count("mailbox: woken");
    const late = world.now - markedAt;
    const what = () => `${process.name} has stood by for ${late.toFixed()} ms since ${id} was handled`;
    world.check("waiters are served", late <= 300, what);
  }

  /** Posts a message, or without one handles what is there. */
  async #work(actor: Actor, message?: NewMessage): Promise<Outcome<unknown>> {
    const { process, redlock, draw, scenario } = actor;
    const drawn = drawOptions(actor);
    const limits = { ...drawn, signal: drawSignal(actor, 2 * drawn.ttl) };
    const options = message ? { ...limits, standBy: draw.chance(scenario.wakeUps ? 0.6 : 0.2) } : limits;
    const manner = this.#drawManner(actor);
    if (message) this.#letters.posted(message.id, { isProbe: false });
    const outcome = await this.#call<unknown>(actor, {
      what: `${message ? `post ${message.id}` : "drain"} ${JSON.stringify(options)}`,
      bound: this.#boundOf(options),
      limits: options,
      run: (call) => {
        const mailbox = new Mailbox<string>(redlock, name, this.#rules);
        const handler = this.#handler(actor, call, manner);
        if (!message) return mailbox.drain(handler, options);
        const posting = mailbox.post(message, handler, options);
        posting.stored.then(
          () => this.#letters.stored(message.id),
          () => undefined,
        );
        return posting;
      },
    });
    if (message && "value" in outcome) {
      const { status } = outcome.value as Posted;
      this.#world.count(`mailbox: ${status}`);
      this.#letters.acknowledged(process, message.id, status);
    }
    return outcome;
  }

  #drawManner({ draw, scenario }: Actor): Manner {
    const isFlaky = this.#isFlaky;
    return {
      reads: draw.chance(this.#isLazy ? 0.9 : 0.05) ? "nothing" : draw.pick(["each", "each", "batches"]),
      fails: isFlaky ? 0.1 : 0,
      breaks: draw.pick([0, 0, 0.3]),
      length: draw.pick([0, this.#slowest, this.#slowest]),
      isQuiet: draw.chance(0.5),
      dies: scenario.faults.includes("client killed") ? 0.01 : 0,
    };
  }

  /** ms within which a call ends that may handle all that others post meanwhile. */
  #boundOf({ wait, timeout }: DrawnOptions): number {
    const { processes, calls } = this.#shared.scenario;
    const messages = 3 * processes * calls;
    return wait + 20 * timeout + messages * (this.#slowest + 4 * timeout);
  }

  async #call<Value>(
    { process, calls }: Actor,
    { what, bound, run, limits }: CallPlan<Value>,
  ): Promise<Outcome<Value>> {
    const world = this.#world;
    const { pausedFor, disturbances } = process;
    const deadline = limits?.deadline ?? Infinity;
    const call: MailboxCall = { invoked: world.now, deadline, disturbances, began: undefined };
    const outcome = await calls.make(process, {
      counted: "mailbox",
      what,
      bound,
      codes,
      waits: limits && { ...limits, rounds },
      run: () => run(call),
      signal: limits?.signal,
      // A message whose processes have died is given up without an error of their own.
      isExpected: (error) =>
        error instanceof Failed || (error instanceof Error && / has failed \d+ times$/.test(error.message)),
    });
    if (!limits) return outcome;
    const { wait, timeout, ttl } = limits;
    // Until it has the turn or needs none.
    const took = (call.began ?? world.now) - call.invoked - (process.pausedFor - pausedFor);
    const most = 1.5 * (wait + rounds * Math.min(timeout, ttl)) + 60;
    world.check("calls end", took <= most, () => `${process.name}: ${what} went on for ${took.toFixed()} ms`);
    return outcome;
  }

  #handler(actor: Actor, call: MailboxCall, manner: Manner): MailboxHandler<string> {
    return async (messages, turn) => {
      const { process, world } = actor;
      const token = this.#shared.wire.mailboxes.lastAttempt(process);
      const hold = this.holds.grant({
        resources: [name],
        nonce: token,
        process,
        remaining: () => turn.remaining(),
        signal: turn.signal,
        invoked: call.invoked,
        // The largest stamp is remembered for as long as messages are.
        fence: this.#rules.retention === undefined ? turn.fence : undefined,
        standing: () => world.servers.map((server) => standsFor(server, token)),
      });
      call.began ??= world.now;
      actor.wakeUps.served(process);
      world.count("mailbox: turn");
      try {
        await this.#read(actor, { call, manner, turn, token }, messages);
      } finally {
        this.holds.release(hold);
      }
    };
  }

  async #read(actor: Actor, reading: Reading, messages: Messages<string>): Promise<void> {
    const { manner } = reading;
    if (manner.reads === "nothing") return;
    if (manner.reads === "each") {
      for await (const message of messages) {
        if (!(await this.#handle(actor, reading, [message])) || actor.draw.chance(manner.breaks)) return;
      }
      return;
    }
    for await (const batch of messages.batches()) {
      if (!(await this.#handle(actor, reading, batch)) || actor.draw.chance(manner.breaks)) return;
    }
  }

  /** @returns whether the turn goes on */
  async #handle(actor: Actor, reading: Reading, batch: readonly Message<string>[]): Promise<boolean> {
    const { process, draw, world } = actor;
    const { manner, turn, token, call } = reading;
    const isLate = process.wallClock() > call.deadline + 1 && process.disturbances === call.disturbances;
    const what = () => `${process.name} begins ${batch[0]!.id} after its deadline`;
    world.check("calls end", !isLate, what);
    for (const message of batch) this.#letters.read(message, token);
    const fail = (why: string) => {
      for (const { id } of batch) this.#letters.failed(id);
      return new Failed(why);
    };
    for (const { id } of batch) {
      if (draw.chance(manner.dies) && world.processes.filter(({ alive }) => alive).length > 2) process.kill();
      await actor.sleep(draw.between(0, manner.length));
      if (draw.chance(manner.fails)) throw fail("it failed");
      if (turn.remaining() <= 0) {
        if (manner.isQuiet) return false;
        throw fail("the turn is lost");
      }
      this.#letters.handled(id);
    }
    return true;
  }

  #giveUp({ id, attempts }: FailedMessage<string>): void {
    this.#world.count("mailbox: given up");
    this.#letters.givenUp(id, attempts);
  }
}

/** How probes handle messages. */
const kind: Manner = { reads: "each", fails: 0, breaks: 0, length: 10, isQuiet: false, dies: 0 };

const patient = { ttl: 2_000, maxHold: 1e9 };

type Limits = DrawnOptions & { readonly signal: AbortSignal | undefined };

/** A call and its limits, where they are checked. */
interface CallPlan<Value> {
  readonly what: string;
  readonly bound: number;
  readonly limits?: Limits;
  readonly run: (call: MailboxCall) => Promise<Value>;
}

/** A handler at work. */
interface Reading {
  readonly call: MailboxCall;
  readonly manner: Manner;
  readonly turn: MailboxTurn;
  /** Of the turn. */
  readonly token: string;
}

/** For how many ms of true time a turn stands at an endpoint. */
function standsFor(server: World["servers"][number], token: string): number {
  const text = server.execute(["GET", key]) as string | null;
  if (!text?.startsWith(`${token} `)) return 0;
  return Math.max(0, Number(server.execute(["PTTL", key]))) / server.rate;
}
