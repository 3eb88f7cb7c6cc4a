import type { Timeline } from "../timeline.ts";
import { Client } from "../world/client.ts";
import { World } from "../world/world.ts";

/** What happens in a world, as the docs show it. */
export interface Scene {
  /** Of its file in docs/images. */
  readonly name: string;
  /** What is to be seen. */
  readonly title: string;
  readonly clients: readonly string[];
  /** What they write to. */
  readonly storage?: string;
  /** Whether times and signs are left out: for a picture that is to be understood at a glance. */
  readonly isPlain?: boolean;
  /** One below the other: as a rule without what the library does, and then with it. */
  readonly acts: readonly Act[];
}

export interface Act {
  readonly title: string;
  readonly endpoints: number;
  play(world: World, clients: readonly Client[]): Promise<void>;
}

/** Plays an act to its end. It is always the same. */
export async function timelineOf({ clients, storage = "" }: Scene, act: Act): Promise<Timeline> {
  const world = new World(act.endpoints, storage);
  const { time, events } = world;
  const processes = clients.map((name) => new Client(world, name));
  await time.settle(act.play(world, processes));
  // What nobody waits for comes to its end, too.
  await time.advance(1_000);
  return {
    title: act.title,
    clients,
    endpoints: [...world.endpoints.map(({ name }) => name), ...(storage ? [storage] : [])],
    to: Math.ceil(events.at(-1)!.time),
    events,
  };
}
