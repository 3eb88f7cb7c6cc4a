import { makeDigestSynchronous } from "../evidence/sim/world/digest.ts";
import type { Style } from "./draw/frame.ts";
import { toSvg } from "./draw/svg.ts";
import { evenSplit } from "./scenes/even-split.ts";
import { expiredOnArrival } from "./scenes/expired-on-arrival.ts";
import { lateWriter } from "./scenes/late-writer.ts";
import { mailbox } from "./scenes/mailbox.ts";
import { type Scene, timelineOf } from "./scenes/scene.ts";
import { twice } from "./scenes/twice.ts";
import votes from "./timeline.json" with { type: "json" };
import type { Timeline } from "./timeline.ts";

const wide: Style = { width: 960, isPlain: false };
/** So narrow that its texts can be read on a phone. */
const plain: Style = { width: 560, isPlain: true };

const scenes: readonly Scene[] = [twice, lateWriter, mailbox, evenSplit, expiredOnArrival];

/** Draws the pictures of README.md and the docs: SVG by the name of the file. */
export async function drawPictures(): Promise<Map<string, string>> {
  const timeline = votes as Timeline;
  const pictures = new Map([["timeline.svg", toSvg(timeline.title, [timeline], wide)]]);
  const undo = makeDigestSynchronous();
  try {
    for (const scene of scenes) pictures.set(`${scene.name}.svg`, await drawScene(scene));
  } finally {
    undo();
  }
  return pictures;
}

/** The acts stand one below the other, on one axis. */
async function drawScene(scene: Scene): Promise<string> {
  const timelines = await Promise.all(scene.acts.map((act) => timelineOf(scene, act)));
  const to = Math.max(...timelines.map((timeline) => timeline.to));
  const onOneAxis = timelines.map((timeline) => ({ ...timeline, to }));
  return toSvg(scene.title, onOneAxis, scene.isPlain ? plain : wide);
}
