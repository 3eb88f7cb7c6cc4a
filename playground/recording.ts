import type { TimelineEvent } from "./picture/timeline.ts";
import { type Scene, type Stage, stageOf } from "./scenes/index.ts";
import { type Step, stepsOf } from "./steps.ts";

/** What happens in an act of a scene, from its beginning to its end. */
export interface Recording {
  readonly events: readonly TimelineEvent[];
  readonly steps: readonly Step[];
  /** ms, whole: nothing happens after it. */
  readonly end: number;
  /** The world in which it happened. */
  readonly stage: Stage;
}

/** Plays an act in one go. */
export async function record(scene: Scene, act: number, seed: number = 3): Promise<Recording> {
  const events: TimelineEvent[] = [];
  const stage = stageOf(scene, { act, seed }, (event) => events.push(event));
  const { time } = stage.world;
  await time.settle(stage.play());
  // What nobody waits for comes to its end, too.
  await time.advance(1_000);
  const end = Math.ceil(events.at(-1)!.time);
  return { events, steps: stepsOf(scene.captions, events), end, stage };
}
