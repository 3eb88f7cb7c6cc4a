import { quorumOf } from "../../../src/quorum/tally.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { stopwatch } from "../../../src/runtime.ts";
import { type OnceContext, once } from "../../../src/sync/index.ts";
import { newHold } from "../sim/holds.ts";
import type { OnceCall } from "../sim/once-histories.ts";
import type { Actor } from "./actor.ts";
import { abort, freeze, setClock } from "./events.ts";
import { at, large, oneTry, pauses, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Replicas that run something once per interval. Times are ms; an interval of 400 ends at 397, by the endpoints' clocks.

const name = "n";
const key = keyOf("redlock", "once", name);
// `wait` is twice the ttl, as by default.
const options = { ...oneTry, every: 400, ttl: 200, wait: 400 };

/** What differs from {@link options}; the routine takes `length` ms, and throws where `fails`. */
interface Own extends Partial<typeof options> {
  readonly signal?: AbortSignal;
  readonly length?: number;
  readonly fails?: boolean;
}

/** Calls `once`, and checks how it ends. */
async function tick(actor: Actor, own: Own = {}): Promise<void> {
  const { length = 0, fails = false, ...given } = { ...options, ...own };
  const { every, ttl, timeout, wait, signal } = given;
  const { client } = actor;
  const { world } = actor.stage;
  client.timeout = Math.min(timeout, ttl);
  const call: OnceCall = { by: client.name, invoked: world.now, every };
  const [waited, frozenBefore] = [stopwatch(client), client.pausedFor];
  const failure = new Error("the routine failed");
  let ran = false;
  const outcome = await actor.call({
    what: "acquire the interval",
    bound: wait + ttl + 6 * timeout + length + 60,
    codes: ["LOCK_LOST", "NO_QUORUM"],
    isExpected: (error) => error === failure || (signal?.aborted === true && error === signal.reason),
    run: () =>
      once(actor.redlock, name, given, async (context) => {
        ran = true;
        const frozen = client.pausedFor - frozenBefore;
        const end = begins(actor, call, { context, waited: waited(), frozen });
        await actor.sleep(length);
        end();
        if (fails) throw failure;
        return client.name;
      }),
  });
  const expected = ran && !fails ? client.name : undefined;
  const value = outcome?.ran ? outcome.value : undefined;
  const what = () => `${client.name}: ${value}, not ${expected}`;
  world.check("the routine's outcome wins", value === expected, what);
  if (outcome?.ran === false) skipped(actor, call, { ...outcome, mayWait: waited() < wait });
}

/** What is known when a routine begins. */
interface Beginning {
  readonly context: OnceContext;
  /** ms since the call, and for how many of them its client has stood still. */
  readonly waited: number;
  readonly frozen: number;
}

/** A routine begins. Returns what to call when it ends. */
function begins(
  { client, stage }: Actor,
  call: OnceCall,
  { context, waited, frozen }: Beginning,
): () => void {
  const { world, watch, shared } = stage;
  const nonce = shared.wire.lastRound(client, key)!;
  const stored = watch.extensionsOf(nonce);
  const quorum = quorumOf(world.servers.length);
  world.trace(() => `${client.name} runs its routine for ${context.remaining()} ms, fence ${context.fence}`);
  const known = () => `${client.name} runs, and ${stored.length} endpoints know of it`;
  world.check("a quorum decides", stored.length >= quorum, known);
  const began = stored.map(({ last }) => last).sort((one, two) => one - two)[quorum - 1] ?? world.now;
  const late = () => `${client.name} runs ${world.now - began} ms after its interval began`;
  world.check("validity is honest", world.now - began <= client.timeout + frozen, late);
  // Endpoints count by their own clocks, which are faster, for how long the call has waited.
  const transit = client.timeout + frozen + 0.01 * waited + 2;
  stage.once.begins(call, Math.min(...stored.map(({ first }) => first)), transit);
  // An interval is never released, and is relied on after the routine's end as well.
  shared.kept.add(nonce);
  const { fence, signal } = context;
  const [budget, elapsed] = [context.remaining(), stopwatch(client)];
  const hold = newHold({
    ...{ resources: [name], nonce, process: client, invoked: call.invoked, acquired: world.now, fence },
    remaining: () => budget - elapsed(),
    lossReported: () => signal.aborted,
  });
  stage.holdsOf("one run per interval").add(hold);
  return () => {
    hold.releaseInvoked = world.now;
  };
}

/** A call did not run: another one has the interval, or the call has waited for as long as it may. */
function skipped(
  { client, stage }: Actor,
  call: OnceCall,
  { retryAfter, mayWait }: { readonly retryAfter: number; readonly mayWait: boolean },
): void {
  const { world, watch } = stage;
  const { invoked, every } = call;
  stage.once.skipped(call, retryAfter);
  if (!mayWait) return;
  const count = world.servers.length;
  const known = watch.extendedOn(invoked - every - 1, invoked);
  const what = () => `${client.name} does not run, and ${known} endpoints know of a run`;
  world.check("refusals are true", known > count - quorumOf(count), what);
}

function ticks(times: readonly number[], own: Own = {}): Program {
  return at(times, (actor) => tick(actor, own));
}

export const onceScenarios: readonly Scenario[] = [
  {
    name: "a tick",
    about: "two replicas call at once, the second one again in that interval and after it",
    endpoints: 3,
    clients: [ticks([0], { length: 40 }), ticks([0, 300, 430])],
    bounds: large,
  },
  {
    name: "ticks and lost messages",
    about:
      "two replicas call in two intervals, and the first one's clock is ahead; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clocks: [3_600_000, 0],
    clients: [ticks([0, 440], { length: 40 }), ticks([30, 430])],
    bounds: usual,
  },
  {
    name: "ticks at one endpoint",
    about: "the first run fails; requests may be executed again later, and do not prolong its interval",
    endpoints: 1,
    repeats: true,
    clocks: [3_600_000, 0],
    clients: [ticks([0, 420], { length: 40, fails: true }), ticks([10, 410])],
    bounds: usual,
  },
  {
    name: "an interval ends while a call waits",
    about: "a call waits for another's claim for longer than an interval; it may be aborted",
    endpoints: 1,
    dialect: "redis",
    events: [abort(1)],
    clients: [
      (actor) => tick(actor, { every: 200, length: 40 }),
      (actor) => tick(actor, { every: 200, backoff: pauses(300), wait: 500, signal: actor.abortable() }),
    ],
    bounds: usual,
  },
  {
    name: "a run outlasts its interval",
    about:
      "the replica that runs stands still, or its clock is set; another one calls at the end of the interval",
    endpoints: 1,
    dialect: "redis",
    events: [freeze(0), setClock(0, -5_000)],
    clients: [ticks([0], { length: 500 }), ticks([250, 390, 400], { wait: 0 })],
    bounds: usual,
  },
];
