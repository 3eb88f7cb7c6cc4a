import { keyOf } from "../../../src/redis/keys.ts";
import { debounce } from "../../../src/sync/index.ts";
import { nonceOf } from "../sim/request.ts";
import type { Actor } from "./actor.ts";
import { abort, freeze } from "./events.ts";
import { at, inOrder, large, oneTry, pass, usual } from "./programs.ts";
import type { Program, Scenario } from "./scenario.ts";

// Bursts of calls, of which the last one runs. Times are ms.

const name = "d";
const key = keyOf("redlock", "debounce", name);
const options = { ...oneTry, window: 200, ttl: 1_000, wait: 300 };

/** What differs from {@link options}. */
type Own = Partial<typeof options> & { readonly signal?: AbortSignal };

/** Calls `debounce`, and checks how it ends. */
async function change(actor: Actor, own: Own = {}): Promise<void> {
  const given = { ...options, ...own };
  const { window, ttl, timeout, wait, signal } = given;
  const { client, stage } = actor;
  const { world, debounces, shared } = stage;
  const { announcements } = debounces;
  client.timeout = timeout;
  const before = announcements.of(client, key).length;
  const invoked = world.moment();
  const present = () => {
    const announcement = announcements.last(client, key)!;
    return { by: client.name, announcement, due: announcements.grantedAt(announcement) + window };
  };
  let ran = false;
  const outcome = await actor.call({
    what: "debounce",
    // It announces itself, waits, asks for as long as it may, and rolls back.
    bound: wait + 2 * window + ttl + 6 * timeout + 60,
    codes: ["LOCK_LOST", "NO_QUORUM"],
    isExpected: (error) => signal?.aborted === true && error === signal.reason,
    run: () =>
      debounce(actor.redlock, name, given, () => {
        ran = true;
        world.note(`${client.name} runs`);
        world.trace(() => `${client.name} runs its routine`);
        debounces.begins(present());
        return client.name;
      }),
  });
  const value = outcome?.ran ? outcome.value : undefined;
  const expected = ran ? client.name : undefined;
  const what = () => `${client.name}: ${value}, not ${expected}`;
  world.check("the routine's outcome wins", value === expected, what);
  if (outcome?.ran === false) debounces.skipped(present());
  world.note(`${client.name} ${outcome?.ran}`);
  debounces.ended({ ...present(), invoked, ran: outcome?.ran });
  // Only what fails is rolled back, and of that the last announcement: a quorum had a later one than those before.
  const sent = announcements.of(client, key).slice(before);
  for (const { text } of outcome ? sent : sent.slice(0, -1)) shared.kept.add(nonceOf(text));
}

function changes(times: readonly number[], own: Own = {}): Program {
  return at(times, (actor) => change(actor, own));
}

export const debounceScenarios: readonly Scenario[] = [
  {
    name: "a burst",
    about: "two calls, the first of them with a clock that is an hour ahead",
    endpoints: 3,
    clocks: [3_600_000, 0],
    clients: [changes([0]), changes([50])],
    bounds: large,
  },
  {
    name: "a burst and lost messages",
    about: "three calls, the second of them with a clock that is an hour behind; messages are lost, not late",
    endpoints: 3,
    loses: true,
    clocks: [3_600_000, 0],
    clients: [changes([0, 210]), changes([50])],
    bounds: usual,
  },
  {
    name: "a burst at one endpoint",
    about:
      "two calls at once, and a third; one client's are kept for less long; requests may be executed again later",
    endpoints: 1,
    repeats: true,
    clients: [changes([0]), changes([0, 220], { ttl: 500 })],
    bounds: usual,
  },
  {
    name: "a call gives up",
    about: "the second of two calls is aborted, and the first one is the last again",
    endpoints: 1,
    dialect: "redis",
    events: [abort(1)],
    clients: [changes([0]), at([50], (actor) => change(actor, { signal: actor.abortable() }))],
    bounds: usual,
  },
  {
    name: "a frozen call",
    about: "a call stands still in its window, while another one comes, runs and expires",
    endpoints: 1,
    dialect: "redis",
    events: [freeze(0)],
    clients: [changes([0], { ttl: 100 }), inOrder(changes([50], { ttl: 100 }), pass(700))],
    bounds: usual,
  },
];
