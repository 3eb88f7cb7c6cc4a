import type { Bar, Call, Fault, Flight, Lane, Shapes } from "./shapes.ts";

// From times and lanes to pixels.

/** A lane's place in the picture, in px from the top. */
export interface PlacedLane extends Lane {
  readonly top: number;
  readonly bottom: number;
  /** Where requests leave and arrive. */
  readonly axis: number;
  readonly barTop: number;
  readonly faultTop: number;
  /** The middle of its name. */
  readonly nameAt: number;
}

/** The part of the time that is drawn, and where. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly isPlain: boolean;
  /** Where the names of invariants stand, and in how many rows. */
  readonly flagTop: number;
  readonly flagRows: number;
  /** The plot without the names of lanes, and without what stands above. */
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  /** Until where things go that go on: the rest of the plot is for what is to come. */
  readonly now: number;
  readonly from: number;
  readonly to: number;
  readonly lanes: readonly PlacedLane[];
  /** Where the captions of the two groups of lanes stand. */
  readonly captions: readonly { readonly text: string; readonly y: number }[];
  /** The px of a time. */
  x(time: number): number;
}

export interface View {
  readonly width: number;
  readonly from: number;
  readonly to: number;
  /** px at the top that something else takes. */
  readonly above?: number;
  /** Whether times and captions are left out. Default false. */
  readonly isPlain?: boolean;
  /** Rows for bars that each lane has at least: room for those that may come. Default 1. */
  readonly rows?: number;
}

export const barHeight = 17;
export const faultRowHeight = 15;
export const flagRowHeight = 25;
const barPitch = barHeight + 3;
const captionHeight = 18;
const callLabelHeight = 19;
const groupGap = 40;
const laneGap = 6;

/** About how wide a text is: pictures are drawn without a browser, too. */
export const textWidth = (text: string, size = 11): number => text.length * size * 0.57;

/** A part of the time with some room at both sides, so that marks at its ends are seen whole. */
export function viewOf(from: number, to: number): { readonly from: number; readonly to: number } {
  const margin = Math.max((to - from) * 0.02, 0.5);
  return { from: from - margin, to: to + margin };
}

/** Places all lanes. */
export function frameOf(shapes: Shapes, view: View): Frame {
  const { isPlain = false, rows = 1 } = view;
  const names = shapes.lanes.map(({ name }) => textWidth(name, 12) + 46);
  // Beside the lanes, where no line crosses them.
  const left = Math.min(190, 0.33 * view.width, Math.max(92, ...names));
  const right = view.width - 12;
  const flagRows = Math.min(3, shapes.verdicts.length);
  const flagTop = view.above ?? 0;
  const top = flagTop + flagRows * flagRowHeight;
  const captions: { text: string; y: number }[] = [];
  let y = top;
  const lanes = shapes.lanes.map((lane, at) => {
    if (lane.kind !== shapes.lanes[at - 1]?.kind) {
      if (at > 0) y += groupGap - laneGap;
      if (!isPlain) {
        captions.push({ text: lane.kind === "client" ? "CLIENTS" : "ENDPOINTS", y: y + 12 });
        y += captionHeight;
      }
    }
    const placed = placeLane(lane, y, rows);
    y = placed.bottom + laneGap;
    return placed;
  });
  const span = Math.max(view.to - view.from, Number.EPSILON);
  const x = (time: number) => left + ((time - view.from) / span) * (right - left);
  const end = x(viewOf(shapes.from, shapes.to).to);
  return {
    width: view.width,
    height: y + (isPlain ? 0 : 36),
    isPlain,
    left,
    right,
    flagTop,
    flagRows,
    top,
    bottom: y,
    now: Math.min(right, Math.max(end, x(shapes.to) + 8)),
    from: view.from,
    to: view.to,
    lanes,
    captions,
    x,
  };
}

function placeLane(lane: Lane, top: number, least: number): PlacedLane {
  const bars = Math.max(least, lane.rows) * barPitch;
  const faults = lane.faultRows * faultRowHeight;
  if (lane.kind === "client") {
    const faultTop = top + 4;
    const barTop = faultTop + faults + 2;
    const axis = barTop + bars + callLabelHeight;
    const bottom = axis + 10;
    return { ...lane, top, bottom, axis, barTop, faultTop, nameAt: (top + bottom) / 2 };
  }
  const axis = top + 8;
  const barTop = axis + 7;
  const faultTop = barTop + bars;
  const bottom = faultTop + faults + 5;
  return { ...lane, top, bottom, axis, barTop, faultTop, nameAt: (top + bottom) / 2 };
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Whether anything of a span is in the frame. */
export const visible = (span: { from: number; to: number }, frame: Frame): boolean =>
  span.to >= frame.from && span.from <= frame.to;

/** A bar's rectangle, as far as it is in the frame. */
export function barBox(bar: Bar, frame: Frame): Box {
  const lane = frame.lanes[bar.lane]!;
  const to = bar.end === "open" ? frame.to + (frame.to - frame.from) : bar.to;
  return { ...across(bar.from, to, frame), y: lane.barTop + bar.row * barPitch, height: barHeight };
}

/** The rectangle between two times; outside the frame it goes on for some px, so that its edge is not seen. */
export function across(from: number, to: number, frame: Frame): Pick<Box, "x" | "width"> {
  const x = Math.max(frame.x(from), frame.left - 8);
  return { x, width: Math.max(1.5, Math.min(frame.x(to), frame.now + 8) - x) };
}

/** The rectangle of a fault, without its name. */
export function faultBox(fault: Fault, frame: Frame): Box {
  const { top: y, bottom } = frame.lanes[fault.lane]!;
  const to = fault.open ? frame.to + (frame.to - frame.from) : fault.to;
  return { ...across(fault.from, to, frame), y, height: bottom - y };
}

export interface Line {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** How far something that is lost gets. */
const lostAt = 0.62;

/** The line of a request or a reply, as far as it came. */
export function flightLine(flight: Flight, frame: Frame): Line {
  const { x1, y1, x2, y2 } = wholeLine(flight, frame);
  const part = flight.fate === "arrived" ? 1 : lostAt;
  return { x1, y1, x2: x1 + (x2 - x1) * part, y2: y1 + (y2 - y1) * part };
}

/** From where something was lost to where it would have arrived. */
export function restLine(flight: Flight, frame: Frame): Line {
  const { x2, y2 } = wholeLine(flight, frame);
  const lost = flightLine(flight, frame);
  return { x1: lost.x2, y1: lost.y2, x2, y2 };
}

function wholeLine({ from, to }: Flight, frame: Frame): Line {
  const [x1, y1] = [frame.x(from.time), frame.lanes[from.lane]!.axis];
  return { x1, y1, x2: frame.x(to.time), y2: frame.lanes[to.lane]!.axis };
}

/** Where the mark of a call's result is; where it was called if it has not returned. */
export function resultPoint(call: Call, frame: Frame): { x: number; y: number } {
  return {
    x: frame.x(call.outcome === undefined ? call.from : call.to),
    y: frame.lanes[call.lane]!.axis,
  };
}
