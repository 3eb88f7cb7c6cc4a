import { faultBox, faultRowHeight, flagRowHeight, type PlacedLane, textWidth, visible } from "./frame.ts";
import { escapeMarkup, type Pen, px, shortened, text, tooltip } from "./pen.ts";
import type { Fault, Verdict } from "./shapes.ts";
import { clientColours } from "./theme.ts";
import { rounded } from "./words.ts";

// What stands behind the events: lanes, time, faults; and before them: violations.

/** The class of a client's colour. */
export const colourClass = (colour: number): string => (colour < 0 ? "" : `c${colour % clientColours}`);

/** Lanes with their names, and the grid of times. */
export function drawLanes(pen: Pen): string {
  const { frame } = pen;
  const { right } = frame;
  const strips = frame.lanes.map(
    ({ top, bottom }) =>
      `<rect class="lane" x="6" y="${px(top)}" width="${px(right - 6)}" height="${px(bottom - top)}" rx="4"/>`,
  );
  const grid = ticksOf(frame.from, frame.to, pen).times.map((time) => {
    const x = px(frame.x(time));
    return `<line class="grid" x1="${x}" y1="${px(frame.top)}" x2="${x}" y2="${px(frame.bottom)}"/>`;
  });
  return [...strips, ...grid].join("");
}

/** The lines on which requests leave and arrive. */
export function drawAxes({ frame }: Pen): string {
  const { left, right } = frame;
  return frame.lanes
    .map(
      ({ axis }) =>
        `<line class="axis" x1="${px(left)}" y1="${px(axis)}" x2="${px(right)}" y2="${px(axis)}"/>`,
    )
    .join("");
}

/** The names of lanes. They stand beside everything else. */
export function drawNames(pen: Pen): string {
  const { captions, lanes } = pen.frame;
  const groups = captions.map((caption) => text(nameStart, caption.y, caption.text, "group halo"));
  return [...groups, ...lanes.map((lane) => nameOf(lane, pen))].join("");
}

const nameStart = 12;
/** px: a flag is to be seen first. Its bold capitals are wide. */
const flagSize = 18;

function nameOf(lane: PlacedLane, { frame }: Pen): string {
  const y = lane.nameAt;
  const size = lane.kind === "endpoint" ? 0 : Math.max(18, textWidth(lane.letter, 11) + 10) + 6;
  const named = (start: number) => {
    const shown = shortened(lane.name, frame.left - start - 8, 12);
    const name = text(start, y + 4, shown, "name halo");
    return shown === lane.name ? name : `<g><title>${escapeMarkup(lane.name)}</title>${name}</g>`;
  };
  if (size === 0) return named(nameStart);
  const badge = `<g class="${colourClass(lane.colour)}"><rect class="badge" x="${nameStart}" y="${px(y - 9)}" width="${px(size - 6)}" height="18" rx="9"/>${text(nameStart + size / 2 - 3, y + 4, lane.letter, "badge-text")}</g>`;
  return badge + (lane.name === lane.letter ? "" : named(nameStart + size));
}

/** Times for the axis, at a round distance, and in which unit they are written. */
function ticksOf(
  from: number,
  to: number,
  { frame, shapes }: Pen,
): { times: number[]; unit: "ms" | "s"; step: number } {
  const least = ((to - from) / (frame.right - frame.left)) * 72;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least) ?? power * 10;
  const first = Math.ceil((from - shapes.from) / step);
  const last = Math.floor((to - shapes.from) / step);
  const times = Array.from(
    { length: Math.max(0, last - first + 1) },
    (_, at) => shapes.from + (first + at) * step,
  );
  return { times, unit: step >= 1_000 || to - shapes.from >= 20_000 ? "s" : "ms", step };
}

/** The times at the bottom, with their unit. */
export function drawAxis(pen: Pen): string {
  const { frame, shapes } = pen;
  const { times, unit } = ticksOf(frame.from, frame.to, pen);
  const y = frame.bottom + 14;
  const marks = times.map((time) => {
    const value = rounded((time - shapes.from) / (unit === "s" ? 1_000 : 1), 4);
    const x = Math.min(
      Math.max(frame.x(time), frame.left + textWidth(value) / 2),
      frame.right - textWidth(value) / 2,
    );
    return `<text class="soft" text-anchor="middle" x="${px(x)}" y="${px(y)}">${value}</text>`;
  });
  const title = `time since the start (${unit === "s" ? "s" : "ms"}) →`;
  const middle = (frame.left + frame.right) / 2;
  return `${marks.join("")}<text class="soft" text-anchor="middle" x="${px(middle)}" y="${px(y + 16)}">${title}</text>`;
}

/** Shaded spans with the faults' names. */
export function drawFaults(pen: Pen): string {
  const { shapes, frame } = pen;
  return shapes.faults
    .filter((fault) => visible(fault, frame))
    .map((fault) => {
      const { x, y, width, height } = faultBox(fault, frame);
      const place = `x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}"`;
      const hatch = fault.hatched ? `<rect ${place} fill="url(#picture-hatch)"/>` : "";
      const edges = [x, x + width].map(
        (edge) =>
          `<line class="fault-edge" x1="${px(edge)}" y1="${px(y)}" x2="${px(edge)}" y2="${px(y + height)}"/>`,
      );
      return `<g>${tooltip(pen.narrator.fault(fault))}<rect class="fault" ${place}/>${hatch}${edges.join("")}</g>`;
    })
    .join("");
}

/** The names of faults, before the lines that cross them. */
export function drawFaultNames(pen: Pen): string {
  return pen.shapes.faults
    .filter((fault) => visible(fault, pen.frame))
    .map((fault) => faultName(fault, pen))
    .join("");
}

function faultName(fault: Fault, { frame, shapes, labels }: Pen): string {
  const { faultTop } = frame.lanes[fault.lane]!;
  const other = fault.other === undefined ? "" : ` (${shapes.lanes[fault.other]?.letter})`;
  const y = faultTop + fault.row * faultRowHeight + 11;
  const x = Math.max(frame.x(fault.from), frame.left) + 4;
  const name = `${fault.name}${other}`;
  const room = frame.right - x;
  const value = shortened(name, room);
  if (room < 24 || !labels.take(x, y, value)) return "";
  return text(x, y, value, "fault-text halo");
}

/** Red and green lines with the invariants' names, which stand before all lines. */
export function drawVerdicts(pen: Pen): string {
  const { shapes, frame } = pen;
  const seen = shapes.verdicts.filter(({ time }) => time >= frame.from && time <= frame.to);
  const drawn = (draw: typeof verdictLine) =>
    seen.map((one) => `<g class="${one.isBroken ? "broken" : "upheld"}">${draw(one, pen)}</g>`);
  return [...drawn(verdictLine), ...drawn(verdictFlag)].join("");
}

function verdictLine(verdict: Verdict, pen: Pen): string {
  const { frame } = pen;
  const x = px(frame.x(verdict.time));
  const lane = frame.lanes[verdict.lane];
  const dot = lane ? `<circle class="flag" cx="${x}" cy="${px(lane.axis)}" r="7"/>` : "";
  const line = `<line class="verdict" x1="${x}" y1="${px(frame.flagTop + 4)}" x2="${x}" y2="${px(frame.bottom)}"/>`;
  return `${tooltip(pen.narrator.verdict(verdict))}${line}${dot}`;
}

function verdictFlag({ isBroken, name, time }: Verdict, { frame, labels }: Pen): string {
  const x = frame.x(time);
  const value = shortened(`${isBroken ? "✕" : "✓"} ${name}`, frame.right - frame.left - 16, flagSize);
  const width = textWidth(value, flagSize) + 12;
  const start = Math.max(frame.left, Math.min(x, frame.right - width));
  const top = (row: number) => frame.flagTop + row * flagRowHeight;
  const free = (row: number) => labels.take(start + 3, top(row) + 16, value, flagSize);
  const row = Array.from({ length: frame.flagRows }, (_, at) => at).find(free);
  if (row === undefined) return "";
  return `<rect class="flag" x="${px(start)}" y="${px(top(row))}" width="${px(width)}" height="22" rx="3"/>${text(start + 6, top(row) + 16, value, "flag-text")}`;
}
