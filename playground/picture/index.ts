// The picture of what happened: for the simulator, the playground and the page of `redis-rest-local`. The package does
// not export it.
export { type MountedPicture, type MountOptions, mountPicture } from "./mount.ts";
export { toSvg } from "./svg.ts";
export type { Outcome, Phase, Timeline, TimelineEvent } from "./timeline.ts";
