import { keyOf } from "../field.ts";
import type { SharedContext } from "./actor.ts";

// A crowd: more calls at once than the servers execute in time, each for a lock that nobody else wants.

const [callers, wait, timeout] = [500, 2_000, 1_000];

/** Lets a crowd come where the scenario has one: the servers' time is used, and who is refused leaves nothing. */
export async function meetCrowd({ world, scenario, actors }: SharedContext): Promise<void> {
  const { crowd: pace } = scenario;
  const actor = actors.find(({ process }) => process.alive);
  if (pace === 0 || !scenario.http || !actor) return;
  world.count("crowd");
  for (const server of world.servers) server.pace = pace;
  // Each call has a timeout of its own.
  actor.process.timeout = 0;
  const options = { wait, timeout, ttl: 600_000 };
  const names = Array.from({ length: callers }, (_, number) => `crowd-${number}`);
  const calls = Promise.allSettled(names.map((name) => actor.redlock.acquire(name, options)));
  await world.scheduler.settle(calls, 60_000);
  const ended = await calls;
  // What is to be rolled back has been by then.
  await world.scheduler.run(world.now + 3 * timeout);
  const refused = names.filter((_, index) => ended[index]!.status === "rejected");
  const standing = refused.filter((name) =>
    world.servers.some((server) => server.execute(["EXISTS", keyOf("lock", name)]) === 1),
  );
  const granted = ended.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
  const least = Math.min(callers, (0.7 * wait) / pace);
  const what = `${granted.length} of ${callers} were granted, at ${pace} ms a command`;
  world.check("waiters are served", granted.length >= least, () => what);
  world.check(
    "nothing is abandoned",
    standing.length === 0,
    () => `${standing.length} of a crowd stand; ${what}`,
  );
  for (const server of world.servers) server.pace = 0;
  await world.scheduler.settle(Promise.all(granted.map((lock) => lock.release())), 60_000);
}
