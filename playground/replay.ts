import type { Click, Moment } from "./address.ts";
import { perform } from "./parts.ts";
import type { TimelineEvent } from "./picture/timeline.ts";
import { type Scene, type Stage, stageOf } from "./scenes/index.ts";

/**
 * A world, and what is done to it: what a link says, and then what the reader does. Everything is done at a whole ms, when all
 * that is due by then has happened, so the same clicks always lead to the same world.
 */
export class Replay {
  readonly stage: Stage;
  readonly clicks: Click[] = [];
  readonly #script: Click[];

  constructor(
    scene: Scene,
    { act, seed, clicks }: Pick<Moment, "act" | "seed" | "clicks">,
    onEvent: (event: TimelineEvent) => void,
  ) {
    this.stage = stageOf(scene, { act, seed }, onEvent);
    this.#script = [...clicks];
  }

  /** ms since its beginning. */
  get elapsed(): number {
    return this.stage.world.time.elapsed;
  }

  /** Lets the world go on. */
  async advance(to: number): Promise<void> {
    for (let next = this.#script[0]; next && next.time <= to; next = this.#script[0]) {
      await this.#pass(next.time);
      this.#script.shift();
      this.#perform(next);
    }
    await this.#pass(to);
  }

  /** Does something now. What the link says of later times does not happen any more. */
  async act(part: string, deed: string): Promise<void> {
    const time = Math.ceil(this.elapsed);
    await this.#pass(time);
    this.#script.length = 0;
    this.#perform({ time, part, deed });
  }

  #perform(click: Click): void {
    this.clicks.push(click);
    perform(this.stage, click);
  }

  async #pass(to: number): Promise<void> {
    const { time } = this.stage.world;
    // More than once where the sum of two times is rounded down.
    do await time.advance(Math.max(0, to - time.elapsed));
    while (time.elapsed < to);
  }
}
