import type { Client } from "./client.ts";
import type { Message, World } from "./world.ts";

// What can happen next in a world. The first option is the straight one: everything is executed and delivered at once,
// the messages of one client after those of the other, then the next timer fires. Late messages stay aside.

/** One thing that can happen next. */
export interface Option {
  /** As schedules name it. */
  readonly name: string;
  /** How many deviations it costs. */
  readonly cost: 0 | 1;
  readonly run: () => void;
}

/** Something rare that may happen once, at any step. */
export interface Event {
  readonly name: string;
  /** Whether it can happen now. Default: always. */
  readonly isPossible?: (world: World) => boolean;
  readonly run: (world: World) => void;
}

/** Which deviations are explored, beside late messages. */
export interface Faults {
  /** Requests are lost instead of late: so much less to choose that the bound can be higher. */
  readonly loses?: boolean;
  /** A request is executed again later, and nobody hears the second reply. */
  readonly repeats?: boolean;
  /** A client in between sends a request again, and the second reply is the one that is heard. */
  readonly retries?: boolean;
  /** HTTP answers come with a wrong status, or with an error beside the result. */
  readonly garbles?: boolean;
  readonly events?: readonly Event[];
}

/** What happens next in the straight order; undefined: nothing is left to happen. */
export function straight(world: World): (() => void) | undefined {
  const message = firstMessage(world);
  if (message) return () => advance(world, message);
  const next = nextTimer(world);
  if (next) return () => world.fire(next, next.nextTimer()!);
  const frozen = world.processes.find((client) => client.frozen);
  if (frozen) return () => thaw(world, frozen);
  const [late] = world.messages.filter(({ isLate }) => isLate).sort(inOrder);
  return late && (() => advance(world, late));
}

/** Everything else that can happen next: without cost, and with one deviation, unless none is left. */
export function deviations(world: World, faults: Faults, left = 1): Option[] {
  const { events = [] } = faults;
  const options: Option[] = [];
  const message = firstMessage(world);
  for (const late of world.messages) {
    if (!late.isLate || (!late.answer && !matters(world, late)) || (late.answer && late.client.frozen))
      continue;
    options.push({ name: `go:${late.id}`, cost: 0, run: () => advance(world, late) });
  }
  for (const client of world.processes) {
    if (client.frozen) options.push({ name: `thaw:${client.name}`, cost: 0, run: () => thaw(world, client) });
  }
  if (left === 0) return options;
  if (message) options.push(...disturb(world, message, faults));
  for (const { name, isPossible, run } of events) {
    if (world.events.has(name) || !(isPossible?.(world) ?? true)) continue;
    options.push({ name, cost: 1, run: () => occur(world, name, run) });
  }
  return options;
}

/** What a fault can do to the message that is next. */
function disturb(world: World, message: Message, { loses, repeats, retries, garbles }: Faults): Option[] {
  const { id, answer } = message;
  const options: Option[] = [];
  const add = (name: string, run: () => void) => void options.push({ name, cost: 1, run });
  if (garbles && answer) {
    for (const flaw of ["status", "error"] as const) {
      add(`${flaw}:${id}`, () => {
        world.trace(() => `the answer to ${id} has a wrong ${flaw}`);
        world.deliver(message, flaw);
      });
    }
  }
  if (loses) {
    add(`lose:${id}`, () => {
      world.trace(() => `the ${answer ? "answer to" : "request"} ${id} is lost`);
      world.lose(message);
    });
    return options;
  }
  if (!answer) {
    // A reply that is late needs no option of its own: a late request may go on at once, and its reply is late then.
    add(`late:${id}`, () => {
      message.isLate = true;
      world.effect = { message };
      world.trace(() => `${id} is late`);
    });
    if (repeats) {
      add(`twice:${id}`, () => {
        world.trace(() => `${id} is executed, and will be once more`);
        world.repeat(message);
        world.events.add("repeated");
        world.execute(message);
        world.effect = { everything: true };
      });
    }
    if (retries) {
      add(`again:${id}`, () => {
        world.trace(() => `${id} is executed, and sent again`);
        world.execute(message);
        message.answer = undefined;
        world.events.add("repeated");
        world.effect = { everything: true };
      });
    }
  } else if (!message.server) {
    add(`late:${id}`, () => {
      message.isLate = true;
      world.effect = { message };
    });
  }
  return [...options, ...overtake(world, message)];
}

/** What can come before the message that is next: a timer, or the messages of another client. */
function overtake(world: World, message: Message): Option[] {
  const options: Option[] = [];
  const timed = nextTimer(world);
  if (timed) options.push({ name: "timer", cost: 1, run: () => world.fire(timed, timed.nextTimer()!) });
  for (const { index, name, frozen } of world.processes) {
    if (frozen || !world.messages.some(({ client, isLate }) => client.index === index && !isLate)) continue;
    if (index === message.client.index) continue;
    const run = () => {
      world.leader = index;
      world.effect = {};
    };
    options.push({ name: `first:${name}`, cost: 1, run });
  }
  return options;
}

/** The message that is next in the straight order: requests before replies, one client after the other. */
function firstMessage({ messages, processes, leader }: World): Message | undefined {
  const rank = ({ client, answer, order }: Message) =>
    ((client.index - leader + processes.length) % processes.length) * 1e6 + (answer ? 1e5 : 0) + order;
  let first: Message | undefined;
  for (const message of messages) {
    if (message.isLate || (message.answer && message.client.frozen)) continue;
    if (!first || rank(message) < rank(first)) first = message;
  }
  return first;
}

function inOrder(one: Message, other: Message): number {
  return one.client.index - other.client.index || one.order - other.order;
}

/** The client whose timer is due first. */
function nextTimer({ processes }: World): Client | undefined {
  let next: Client | undefined;
  let earliest = Number.POSITIVE_INFINITY;
  for (const client of processes) {
    const timer = client.frozen ? undefined : client.nextTimer();
    const due = timer ? timer.due + client.pausedFor : Number.POSITIVE_INFINITY;
    if (due < earliest) [next, earliest] = [client, due];
  }
  return next;
}

/** A request is executed, or an answer delivered. */
function advance(world: World, message: Message): void {
  if (message.answer) world.deliver(message);
  else world.execute(message);
  world.dropUnheard();
}

/**
 * Whether it may make a difference that a late request is executed now and not one step earlier: only if that step has
 * changed its endpoint, its client, or the time. Its reply is late, too, so nobody notices the execution itself.
 */
function matters({ effect }: World, { server, client, id }: Message): boolean {
  const { everything, message } = effect;
  return everything === true || effect.server === server || effect.client === client || message?.id === id;
}

function thaw(world: World, client: Client): void {
  client.thaw();
  world.trace(() => `${client.name} goes on`);
  world.effect = { everything: true };
}

function occur(world: World, name: string, run: (world: World) => void): void {
  world.trace(() => name);
  world.events.add(name);
  run(world);
  world.effect = { everything: true };
  world.dropUnheard();
}
