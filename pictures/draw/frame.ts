import type { Bar } from "./bars.ts";
import { type Box, type Labels, textWidth } from "./pen.ts";
import type { Lane, Shapes } from "./shapes.ts";

// From times and lanes to pixels.

/** A lane's place in the picture, in px from the top. */
export interface PlacedLane extends Lane {
  readonly top: number;
  readonly bottom: number;
  /** Where requests leave and arrive. */
  readonly axis: number;
  readonly barTop: number;
}

/** How pictures are drawn. */
export interface Style {
  /** px. */
  readonly width: number;
  /** Whether times, signs and captions are left out: for a picture that is to be understood at a glance. */
  readonly isPlain: boolean;
}

/** Where things are drawn. */
export interface Frame extends Style {
  readonly height: number;
  /** The plot without the names of lanes, and without the flags above. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** The times at its edges: marks at the beginning and at the end are seen whole. */
  readonly from: number;
  readonly to: number;
  readonly lanes: ReadonlyMap<string, PlacedLane>;
  /** Where the captions of the two groups of lanes stand. */
  readonly captions: readonly { readonly text: string; readonly y: number }[];
  /** The px of a time. */
  x(time: number): number;
}

/** What every part of a drawing needs. */
export interface Pen {
  readonly shapes: Shapes;
  readonly frame: Frame;
  readonly labels: Labels;
}

const barHeight = 17;
const flagHeight = 25;
const pauseNameHeight = 15;
const barPitch = barHeight + 3;
const captionHeight = 18;
const callLabelHeight = 19;
const groupGap = 40;
const laneGap = 6;

/** Places all lanes. */
export function frameOf({ lanes, verdicts, to: end }: Shapes, style: Style): Frame {
  const { width, isPlain } = style;
  // Beside the lanes, where no line crosses them.
  const left = Math.max(92, ...lanes.map(({ name }) => textWidth(name, 12) + 46));
  const right = width - 12;
  const top = verdicts.length > 0 ? flagHeight : 0;
  const captions: { text: string; y: number }[] = [];
  const placed = new Map<string, PlacedLane>();
  let y = top;
  for (const [at, lane] of lanes.entries()) {
    if (lane.kind !== lanes[at - 1]?.kind) {
      if (at > 0) y += groupGap - laneGap;
      if (!isPlain) {
        captions.push({ text: lane.kind === "client" ? "CLIENTS" : "ENDPOINTS", y: y + 12 });
        y += captionHeight;
      }
    }
    const place = placeLane(lane, y, isPlain ? 0 : 1);
    placed.set(lane.name, place);
    y = place.bottom + laneGap;
  }
  const height = y + (isPlain ? 0 : 36);
  const [from, to] = [-0.02 * end, 1.02 * end];
  const x = (time: number) => left + ((time - from) / (to - from)) * (right - left);
  return { ...style, height, left, right, top, bottom: y, from, to, lanes: placed, captions, x };
}

/** @param rows for bars that it has at least */
function placeLane(lane: Lane, top: number, rows: number): PlacedLane {
  const bars = Math.max(rows, lane.rows) * barPitch;
  if (lane.kind === "endpoint") {
    const axis = top + 8;
    const barTop = axis + 7;
    return { ...lane, top, bottom: barTop + bars + 5, axis, barTop };
  }
  const barTop = top + 6 + (lane.hasPause ? pauseNameHeight : 0);
  const axis = barTop + bars + callLabelHeight;
  return { ...lane, top, bottom: axis + 10, axis, barTop };
}

/** A bar's rectangle. */
export function barBox({ lane, row, from, to, end }: Bar, frame: Frame): Box {
  const { barTop } = frame.lanes.get(lane)!;
  const until = end === "open" ? Number.POSITIVE_INFINITY : to;
  return { ...across(from, until, frame), y: barTop + row * barPitch, height: barHeight };
}

/** What is between two times. What goes on is cut off at the right. */
export function across(from: number, to: number, frame: Frame): Pick<Box, "x" | "width"> {
  const x = frame.x(from);
  return { x, width: Math.max(1.5, Math.min(frame.x(to), frame.right + 8) - x) };
}
