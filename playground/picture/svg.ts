import { drawBars, drawBarTexts, drawCalls, drawFlights, drawRemarks } from "./draw-events.ts";
import {
  drawAxes,
  drawAxis,
  drawFaultNames,
  drawFaults,
  drawLanes,
  drawNames,
  drawVerdicts,
} from "./draw-lanes.ts";
import { type Frame, frameOf, textWidth, viewOf } from "./frame.ts";
import { shapesOf } from "./layout.ts";
import { drawLegend } from "./legend.ts";
import { escapeMarkup, Labels, type Pen, px, text } from "./pen.ts";
import type { Shapes } from "./shapes.ts";
import { pictureCss } from "./theme.ts";
import type { Timeline } from "./timeline.ts";
import { Narrator } from "./words.ts";

/** How pictures stand together. */
export interface Sheet {
  /** Default: that of the first timeline. */
  readonly title?: string;
  /** px. Default 960. */
  readonly width?: number;
  /** Whether times and signs are left out: for a picture that is to be understood at a glance. */
  readonly isPlain?: boolean;
}

/**
 * Draws timelines as a self-contained SVG image, one below the other, with a title, a legend, and a tooltip on everything. It
 * needs no script, has no link to anything else, and follows the reader's light or dark scheme.
 */
export function toSvg(timelines: readonly Timeline[], sheet: Sheet = {}): string {
  const { title = timelines[0]?.title ?? "", width = 960, isPlain = false } = sheet;
  const pictures = timelines.map(shapesOf);
  const view = viewOf(
    Math.min(...pictures.map(({ from }) => from)),
    Math.max(...pictures.map(({ to }) => to)),
  );
  const heading = wrap(title, width - 24, 15);
  let markup = heading.map((line, at) => text(12, 24 + at * 20, line, "heading")).join("");
  let y = 14 + heading.length * 20;
  for (const [at, shapes] of pictures.entries()) {
    const isOne = pictures.length === 1;
    if (!isOne) markup += text(12, y + 16, shapes.title, "heading");
    // Beside the title is room for flags.
    const above = isOne || shapes.verdicts.length > 0 ? 0 : 25;
    const frame = frameOf(shapes, { ...view, width, above, isPlain, rows: isPlain ? 0 : 1 });
    markup += `<g transform="translate(0 ${y})">${drawPicture(shapes, frame, `${at}`)}</g>`;
    y += frame.height + (isOne ? 0 : 12);
  }
  if (!isPlain) {
    const legend = drawLegend(pictures, width);
    markup += `<g transform="translate(0 ${y})">${legend.markup}</g>`;
    y += legend.height;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" width="${width}" height="${px(y)}" viewBox="0 0 ${width} ${px(y)}"><title>${escapeMarkup(title)}</title><style>${pictureCss}</style>${hatch}<rect class="paper" width="${width}" height="${px(y)}"/>${markup}</svg>\n`;
}

/** The pattern of processes that do not run, which pictures and legends refer to. */
export const hatch = `<defs><pattern id="picture-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>`;

/**
 * The inside of a picture: everything but the title, the style and the legend.
 *
 * @param id Tells its parts apart from those of other pictures.
 */
export function drawPicture(shapes: Shapes, frame: Frame, id = ""): string {
  const pen: Pen = { shapes, frame, labels: new Labels(), narrator: new Narrator(shapes) };
  const past = [drawFaults(pen), drawAxes(pen), drawBars(pen), drawFlights(pen)].join("");
  // What is the news takes its place first.
  const verdicts = drawVerdicts(pen);
  const marks = [drawFaultNames(pen), drawBarTexts(pen), drawCalls(pen), drawRemarks(pen), verdicts].join("");
  const { left, right, now, height } = frame;
  const clip = (name: string, end: number) =>
    `<clipPath id="picture-${name}${id}"><rect x="${left}" y="0" width="${px(Math.max(0, end - left))}" height="${height}"/></clipPath>`;
  const axis = frame.isPlain ? "" : drawAxis(pen);
  return `<defs>${clip("plot", right)}${clip("past", now)}</defs>${drawLanes(pen)}<g clip-path="url(#picture-past${id})">${past}</g><g clip-path="url(#picture-plot${id})">${marks}</g>${drawNames(pen)}${axis}`;
}

/** Breaks a text into lines of at most so many px. */
function wrap(words: string, width: number, size: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(" ")) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && textWidth(longer, size) <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
