import type { World } from "./world.ts";

/** Messages that anybody may publish, who knows the address and the token. */
export interface Forging {
  /** Average ms between two of them on a channel. */
  readonly every: number;
  readonly payloads: readonly string[];
}

/** What a release or a waiter might have published. */
const plausible = ["free", "r", "all", "ask:t1"];

/** What no release publishes. The longest is longer than any line that the library reads. */
const garbage = ["", "-1", "1.5", "a b", "1,2", "1\ndata: message,x,free", "9".repeat(9_000)];

/** What is forged in a world: anything; or garbage alone; or that somebody else always asks. */
export const forgeries: readonly (readonly string[])[] = [
  [...plausible, ...garbage, "1\n\ndata: subscribe,x,1"],
  garbage,
  ["ask:t1"],
];

/** Publishes messages wherever somebody listens. @returns ends it */
export function startForging(world: World, { every, payloads }: Forging): () => void {
  const { scheduler, draw, servers } = world;
  let isOver = false;
  const schedule = () => scheduler.at(world.now + draw.between(0, 2 * every), forge);
  const forge = () => {
    if (isOver) return;
    for (const server of servers.filter(({ up, silent }) => up && !silent)) {
      for (const channel of server.channels()) {
        world.count("message forged");
        server.execute(["PUBLISH", channel, draw.pick(payloads)]);
      }
    }
    schedule();
  };
  schedule();
  return () => {
    isOver = true;
  };
}
