// The picture of what happened, for the playground and the docs. The package does not export it.
export { type Frame, frameOf, viewOf } from "./frame.ts";
export { shapesOf } from "./layout.ts";
export { drawLegend } from "./legend.ts";
export { drawPicture, hatch, toSvg } from "./svg.ts";
export { pictureCss } from "./theme.ts";
export type { Outcome, Phase, Timeline, TimelineEvent } from "./timeline.ts";
