import type { Timeline } from "../timeline.ts";
import { drawBars, drawBarTexts, drawCalls, drawExchanges, drawRemarks } from "./events.ts";
import { frameOf, type Pen, type Style } from "./frame.ts";
import {
  drawAxes,
  drawAxis,
  drawLanes,
  drawNames,
  drawPauseNames,
  drawPauses,
  drawVerdicts,
} from "./lanes.ts";
import { drawLegend } from "./legend.ts";
import { Labels, px, text, tooltip } from "./pen.ts";
import { shapesOf } from "./shapes.ts";
import { pictureCss } from "./theme.ts";

/**
 * Draws timelines as a self-contained SVG image, one below the other on one axis, with a title, a legend, and a tooltip on
 * everything. It needs no script, has no link to anything else, and follows the reader's light or dark scheme.
 */
export function toSvg(title: string, timelines: readonly Timeline[], style: Style): string {
  const { width, isPlain } = style;
  const pictures = timelines.map(shapesOf);
  let markup = text(12, 24, title, "heading");
  let y = 34;
  const isOne = pictures.length === 1;
  for (const [at, shapes] of pictures.entries()) {
    if (!isOne) markup += text(12, y + 16, shapes.title, "heading");
    const pen: Pen = { shapes, frame: frameOf(shapes, style), labels: new Labels() };
    markup += `<g transform="translate(0 ${y})">${drawPicture(pen, at)}</g>`;
    y += pen.frame.height + (isOne ? 0 : 12);
  }
  if (!isPlain) {
    const legend = drawLegend(pictures, width);
    markup += `<g transform="translate(0 ${y})">${legend.markup}</g>`;
    y += legend.height;
  }
  const size = `width="${width}" height="${px(y)}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" ${size} viewBox="0 0 ${width} ${px(y)}">${tooltip(title)}<style>${pictureCss}</style>${hatch}<rect class="paper" ${size}/>${markup}</svg>\n`;
}

/** The pattern of processes that do not run, which pictures and legends refer to. */
const hatch = `<defs><pattern id="picture-hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>`;

/** Everything but the title, the style and the legend. */
function drawPicture(pen: Pen, id: number): string {
  const behind = [drawPauses(pen), drawAxes(pen), drawBars(pen), drawExchanges(pen)].join("");
  // What is the news takes its place first.
  const verdicts = drawVerdicts(pen);
  const marks = [drawPauseNames(pen), drawBarTexts(pen), drawCalls(pen), drawRemarks(pen), verdicts].join("");
  const { left, right, height, isPlain } = pen.frame;
  const plot = `<rect x="${left}" y="0" width="${px(right - left)}" height="${height}"/>`;
  // One area with two names: with a single one the files would change, and look as before.
  const clip = (name: string) => `<clipPath id="picture-${name}${id}">${plot}</clipPath>`;
  const clipped = (name: string, inside: string) => `<g clip-path="url(#picture-${name}${id})">${inside}</g>`;
  return [
    `<defs>${clip("plot")}${clip("past")}</defs>`,
    drawLanes(pen),
    clipped("past", behind),
    clipped("plot", marks),
    drawNames(pen),
    isPlain ? "" : drawAxis(pen),
  ].join("");
}
