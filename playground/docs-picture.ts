import { toSvg } from "./picture/index.ts";
import { record } from "./recording.ts";
import type { Scene } from "./scenes/index.ts";

/** The picture of a scene in README.md and the docs. The acts stand one below the other, on one axis. */
export async function docsPicture(scene: Scene): Promise<string> {
  const recordings = await Promise.all(scene.acts.map((_, act) => record(scene, act)));
  const to = Math.max(...recordings.map(({ end }) => end));
  const timelines = recordings.map(({ events, stage }, act) => {
    const timeline = stage.world.timeline(scene.acts[act]!.name);
    const endpoints = timeline.endpoints.filter((name) => events.some(({ endpoint }) => endpoint === name));
    return { ...timeline, endpoints, from: 0, to, events };
  });
  // So narrow that their texts can be read on a phone.
  const isPlain = ["twice", "mailbox"].includes(scene.id);
  return toSvg(timelines, { title: scene.shows, isPlain, ...(isPlain && { width: 560 }) });
}
