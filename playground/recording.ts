import type { TimelineEvent } from "./picture/timeline.ts";
import type { Preset } from "./presets.ts";
import { Stage } from "./stage.ts";
import { type Step, stepsOf } from "./steps.ts";

/** What happens in a scene, from its beginning to its end. */
export interface Recording {
  readonly events: readonly TimelineEvent[];
  readonly steps: readonly Step[];
  /** ms, whole: nothing happens after it. */
  readonly end: number;
  /** The world in which it happened. */
  readonly stage: Stage;
}

/** The world of a scene: always the same, so that a link shows everybody the same. */
export function stageOf(preset: Preset, fencing: boolean, onEvent: (event: TimelineEvent) => void): Stage {
  return new Stage({ ...preset, fencing }, { network: { latency: 40, loss: 0 }, seed: 3, onEvent });
}

/** Plays a scene in one go. */
export async function record(preset: Preset, fencing: boolean): Promise<Recording> {
  const events: TimelineEvent[] = [];
  const stage = stageOf(preset, fencing, (event) => events.push(event));
  const { time } = stage.world;
  await time.settle(preset.play(stage));
  // What nobody waits for comes to its end, too.
  await time.advance(1_000);
  const end = Math.ceil(events.at(-1)!.time);
  return { events, steps: stepsOf(preset.captions, events), end, stage };
}
