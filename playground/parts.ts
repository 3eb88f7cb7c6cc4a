import type { MemoryEndpoint } from "../local/src/memory/index.ts";
import type { Actor, Deed, Slot } from "./actor.ts";
import type { Click } from "./address.ts";
import type { Stage } from "./scenes/index.ts";
import type { World } from "./world.ts";

/** A part of the world that the reader can do something to: a lane of the picture. */
export interface Part {
  readonly name: string;
  says(): string;
  /** What is done to it by a click on its lane. */
  readonly lane: Slot;
  readonly slots: readonly Slot[];
}

/** The processes of a world, and its endpoints. */
export function partsOf({ world, actors }: Stage): { actors: readonly Part[]; endpoints: readonly Part[] } {
  return {
    actors: actors.map(partOfActor),
    endpoints: world.endpoints.map((endpoint) => partOfEndpoint(endpoint, world)),
  };
}

function partOfActor(actor: Actor): Part {
  const { client, slots } = actor;
  return {
    name: client.name,
    says: () => actor.says,
    lane: [
      { label: "Freeze", isPossible: () => !client.isFrozen, act: () => client.freeze() },
      { label: "Wake up", isPossible: () => client.isFrozen, act: () => client.thaw() },
    ],
    slots,
  };
}

function partOfEndpoint(endpoint: MemoryEndpoint, world: World): Part {
  const isKilled = () => world.killed.has(endpoint.name);
  const startEmpty: Deed = {
    label: "Start empty",
    isPossible: isKilled,
    act: () => world.start(endpoint, "lost"),
  };
  const jump: Deed = { label: "Clock +5 s", isPossible: () => true, act: () => world.jump(endpoint, 5_000) };
  const cuts = world.clients.map(({ name }): Slot => {
    const cut = (label: string, isCut: boolean): Deed => ({
      label: `${label} ${name}`,
      isPossible: () => world.isCut(name, endpoint.name) !== isCut,
      act: () => world.setCut(name, endpoint.name, isCut),
    });
    return [cut("Cut off", true), cut("Let in", false)];
  });
  return {
    name: endpoint.name,
    says() {
      if (isKilled()) return "killed";
      const held = [...world.stored(endpoint).values()].filter(({ until }) => until > world.time.elapsed);
      return held.map(({ label, holder }) => `${label}: ${holder}`).join(", ") || "holds nothing";
    },
    lane: [
      { label: "Kill", isPossible: () => !isKilled(), act: () => world.kill(endpoint) },
      { label: "Start", isPossible: isKilled, act: () => world.start(endpoint, "kept") },
    ],
    slots: [[startEmpty], [jump], ...cuts],
  };
}

/** The largest numbers that the reader can choose for the network: ms, and percent. */
export const most = { latency: 300, loss: 60 };

/** Does what the reader has done to a world, if it is possible in it. */
export function perform(stage: Stage, { part, deed }: Omit<Click, "time">): void {
  const { network } = stage.world;
  const number = Number(deed);
  if (part === "latency" && number <= most.latency) network.latency = number;
  if (part === "loss" && number <= most.loss) network.loss = number / 100;
  const { actors, endpoints } = partsOf(stage);
  const found = [...actors, ...endpoints].find(({ name }) => name === part);
  const deeds = [found?.lane ?? [], ...(found?.slots ?? [])].flat();
  const wanted = deeds.find(({ label }) => label === deed);
  if (wanted?.isPossible()) void wanted.act();
}
