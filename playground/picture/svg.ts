import { drawBars, drawBarTexts, drawCalls, drawFlights, drawRemarks } from "./draw-events.ts";
import {
  drawAxes,
  drawAxis,
  drawFaultNames,
  drawFaults,
  drawLanes,
  drawNames,
  drawViolations,
} from "./draw-lanes.ts";
import { type Frame, frameOf, textWidth, viewOf } from "./frame.ts";
import { shapesOf } from "./layout.ts";
import { legendOf } from "./legend.ts";
import { escapeMarkup, Labels, type Pen, px, text } from "./pen.ts";
import type { Shapes } from "./shapes.ts";
import { pictureCss } from "./theme.ts";
import type { Timeline } from "./timeline.ts";
import { Narrator } from "./words.ts";

/**
 * Draws a timeline as a self-contained SVG image, with its title, a legend, and a tooltip on everything. It needs no
 * script, has no link to anything else, and follows the reader's light or dark scheme.
 *
 * @param width px. Default 960.
 */
export function toSvg(timeline: Timeline, width = 960): string {
  const shapes = shapesOf(timeline);
  const heading = wrap(shapes.title, width - 24, 15);
  const above = 14 + heading.length * 20;
  const frame = frameOf(shapes, { ...viewOf(shapes.from, shapes.to), width, above });
  const title = heading.map((line, at) => text(12, 24 + at * 20, line, "heading")).join("");
  const { markup, height } = drawPicture(shapes, frame);
  return `<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><title>${escapeMarkup(shapes.title)}</title><style>${pictureCss}</style><rect class="paper" width="${width}" height="${height}"/>${title}${markup}</svg>\n`;
}

/** The inside of a picture: everything but the title and the style. */
export function drawPicture(
  shapes: Shapes,
  frame: Frame,
): { readonly markup: string; readonly height: number } {
  const pen: Pen = { shapes, frame, labels: new Labels(), narrator: new Narrator(shapes) };
  const legend = legendOf(pen);
  const past = [drawFaults(pen), drawAxes(pen), drawBars(pen), drawFlights(pen)].join("");
  const marks = [
    drawFaultNames(pen),
    drawBarTexts(pen),
    drawCalls(pen),
    drawRemarks(pen),
    drawViolations(pen),
  ].join("");
  const { left, right, now, height } = frame;
  const clip = (name: string, end: number) =>
    `<clipPath id="picture-${name}"><rect x="${left}" y="0" width="${px(Math.max(0, end - left))}" height="${height}"/></clipPath>`;
  const markup = `<defs>${clip("plot", right)}${clip("past", now)}<pattern id="picture-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>${drawLanes(pen)}<g clip-path="url(#picture-past)">${past}</g><g clip-path="url(#picture-plot)">${marks}</g>${drawNames(pen)}${drawAxis(pen)}${legend.markup}`;
  return { markup, height: height + legend.height };
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
