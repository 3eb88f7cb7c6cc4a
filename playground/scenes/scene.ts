import type { Actor } from "../actor.ts";
import type { TimelineEvent } from "../picture/timeline.ts";
import type { Caption } from "../steps.ts";
import { type Cast, World } from "../world.ts";

/** A scene that plays by itself. */
export interface Scene extends Cast {
  /** What links call it. */
  readonly id: string;
  readonly name: string;
  /** What is to be seen. */
  readonly shows: string;
  /** Its acts, one after the other: as a rule without what the library does, and then with it. */
  readonly acts: readonly Act[];
  readonly captions: readonly Caption[];
  /** ms of its world in a ms of the page: so that its captions can be read. */
  readonly speed: number;
  begin(world: World, act: Act): Play;
}

/** One of a scene's acts. It may have another cast. */
export interface Act extends Partial<Cast> {
  readonly name: string;
  /** Whether the library, or its fence, guards what is written. */
  readonly isGuarded: boolean;
}

/** What goes on in a world. */
export interface Play {
  readonly actors: readonly Actor[];
  /** What the storage has, line by line. */
  lines(): string[];
  play(): Promise<void>;
  /** In a sentence: what has happened. */
  outcome(): string;
}

/** A world with what goes on in it. */
export interface Stage extends Play {
  readonly world: World;
  readonly scene: Scene;
  /** The number of the act, from 0. */
  readonly act: number;
  readonly seed: number;
}

/** A scene's world before it begins: always the same for a seed, so that a link shows everybody the same. */
export function stageOf(
  scene: Scene,
  { act, seed }: Pick<Stage, "act" | "seed">,
  onEvent: (event: TimelineEvent) => void,
): Stage {
  const network = { latency: 40, loss: 0 };
  const world = new World({ ...scene, ...scene.acts[act] }, { network, seed, onEvent });
  return { world, scene, act, seed, ...scene.begin(world, scene.acts[act]!) };
}

/** Times of the scenes' world, as a reader wants them. */
export const ms = (time = 0): string => `${Math.round(time)} ms`;

export const withFence = (fence: number | undefined): string =>
  fence === undefined ? "" : ` with fence ${fence}`;
