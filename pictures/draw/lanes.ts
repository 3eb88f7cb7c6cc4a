import type { Frame, Pen, PlacedLane } from "./frame.ts";
import { px, text, textWidth, tooltip } from "./pen.ts";
import type { Pause, Verdict } from "./shapes.ts";
import { ofPause, ofVerdict } from "./words.ts";

// What stands behind the events: lanes, time, pauses; and before them: verdicts.

/** Lanes, and the grid of times. */
export function drawLanes({ frame }: Pen): string {
  const { right } = frame;
  const strips = Array.from(
    frame.lanes.values(),
    ({ top, bottom }) =>
      `<rect class="lane" x="6" y="${px(top)}" width="${px(right - 6)}" height="${px(bottom - top)}" rx="4"/>`,
  );
  const grid = ticksOf(frame).map((time) => vertical("grid", frame.x(time), frame.top, frame.bottom));
  return [...strips, ...grid].join("");
}

function vertical(kind: string, x: number, from: number, to: number): string {
  return `<line class="${kind}" x1="${px(x)}" y1="${px(from)}" x2="${px(x)}" y2="${px(to)}"/>`;
}

/** The lines on which requests leave and arrive. */
export function drawAxes({ frame }: Pen): string {
  const { left, right } = frame;
  return Array.from(
    frame.lanes.values(),
    ({ axis }) => `<line class="axis" x1="${px(left)}" y1="${px(axis)}" x2="${px(right)}" y2="${px(axis)}"/>`,
  ).join("");
}

const nameStart = 12;

/** The names of lanes. They stand beside everything else. */
export function drawNames({ frame }: Pen): string {
  const groups = frame.captions.map((caption) => text(nameStart, caption.y, caption.text, "group halo"));
  return [...groups, ...Array.from(frame.lanes.values(), nameOf)].join("");
}

function nameOf({ kind, top, bottom, letter, colour, name }: PlacedLane): string {
  const y = (top + bottom) / 2;
  if (kind === "endpoint") return text(nameStart, y + 4, name, "name halo");
  const width = Math.max(18, textWidth(letter) + 10);
  const badge = `<g class="${colour}"><rect class="badge" x="${nameStart}" y="${px(y - 9)}" width="${px(width)}" height="18" rx="9"/>${text(nameStart + width / 2, y + 4, letter, "badge-text")}</g>`;
  return badge + (name === letter ? "" : text(nameStart + width + 6, y + 4, name, "name halo"));
}

/** Times for the axis, at a round distance. */
function ticksOf({ left, right, from, to }: Frame): number[] {
  const least = ((to - from) / (right - left)) * 72;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= least)!;
  return Array.from({ length: Math.floor(to / step) + 1 }, (_, at) => at * step);
}

/** The times at the bottom, with their unit. */
export function drawAxis({ frame }: Pen): string {
  const { left, right } = frame;
  const y = frame.bottom + 14;
  const centred = (x: number, at: number, value: string) =>
    `<text class="soft" text-anchor="middle" x="${px(x)}" y="${px(at)}">${value}</text>`;
  const marks = ticksOf(frame).map((time) => {
    const half = textWidth(`${time}`) / 2;
    return centred(Math.min(Math.max(frame.x(time), left + half), right - half), y, `${time}`);
  });
  return marks.join("") + centred((left + right) / 2, y + 16, "time since the start (ms) →");
}

/** Shaded spans in which clients do not run. */
export function drawPauses({ shapes, frame }: Pen): string {
  return shapes.pauses
    .map((pause) => {
      const { top, bottom } = frame.lanes.get(pause.client)!;
      const [from, to] = [frame.x(pause.from), frame.x(pause.to)];
      const place = `x="${px(from)}" y="${px(top)}" width="${px(to - from)}" height="${px(bottom - top)}"`;
      const edges = [from, to].map((edge) => vertical("fault-edge", edge, top, bottom)).join("");
      return `<g>${tooltip(ofPause(pause))}<rect class="fault" ${place}/><rect ${place} fill="url(#picture-hatch)"/>${edges}</g>`;
    })
    .join("");
}

/** The names of pauses, before the lines that cross them. */
export const drawPauseNames = (pen: Pen): string =>
  pen.shapes.pauses.map((pause) => pauseName(pause, pen)).join("");

function pauseName({ client, name, from }: Pause, { frame, labels }: Pen): string {
  const [x, y] = [frame.x(from) + 4, frame.lanes.get(client)!.top + 15];
  labels.take(x, y, name);
  return text(x, y, name, "fault-text halo");
}

/** Red and green lines with the verdicts' names, which stand before all lines. */
export function drawVerdicts(pen: Pen): string {
  const drawn = (draw: typeof verdictLine) =>
    pen.shapes.verdicts.map((one) => {
      return `<g class="${one.phase === "violated" ? "broken" : "upheld"}">${draw(one, pen)}</g>`;
    });
  return [...drawn(verdictLine), ...drawn(verdictFlag)].join("");
}

function verdictLine(verdict: Verdict, { frame }: Pen): string {
  const x = frame.x(verdict.time);
  const { axis } = frame.lanes.get(verdict.endpoint)!;
  const dot = `<circle class="flag" cx="${px(x)}" cy="${px(axis)}" r="7"/>`;
  return tooltip(ofVerdict(verdict)) + vertical("verdict", x, 4, frame.bottom) + dot;
}

/** px: a flag is to be seen first. Its bold capitals are wide. */
const flagSize = 18;

function verdictFlag({ phase, name, time }: Verdict, { frame, labels }: Pen): string {
  const value = `${phase === "violated" ? "✕" : "✓"} ${name}`;
  const width = textWidth(value, flagSize) + 12;
  const x = Math.max(frame.left, Math.min(frame.x(time), frame.right - width));
  labels.take(x + 3, 16, value, flagSize);
  return `<rect class="flag" x="${px(x)}" y="0" width="${px(width)}" height="22" rx="3"/>${text(x + 6, 16, value, "flag-text")}`;
}
