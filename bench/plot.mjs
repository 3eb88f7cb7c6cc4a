// Draws charts as SVG: panels of lines below each other. Readable on light and dark pages and without colours:
// every line has its own dashes, markers and name. A pure function of its argument.
import { load } from "../tools/load.mjs";

const { escapeMarkup } = await load("playground/picture/pen.ts");
const width = 640;
const left = 48;
const right = 424;
const plotHeight = 170;
const lineStyles = [
  { light: "#0a58ca", dark: "#6cb0ff", dash: "", marker: "M-4,-4h8v8h-8z" },
  { light: "#0a58ca", dark: "#6cb0ff", dash: "7 4", marker: "M0,-5l5,5l-5,5l-5,-5z" },
  { light: "#b54708", dark: "#ffa657", dash: "", marker: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z" },
  { light: "#b54708", dark: "#ffa657", dash: "2 4", marker: "M0,-5l5,9h-10z" },
];

/**
 * @typedef {{ name: string, values: (number | undefined)[] }} Line one value for each x; undefined: not measured
 * @typedef {{ title: string, xTitle: string, xs: (string | number)[], lines: Line[] }} Panel
 */

/**
 * A chart. Its title says what one learns from it; the title of a panel names the measure and its unit.
 *
 * @param {{ title: string, panels: Panel[] }} chart at most four lines in a panel
 * @returns {string} an SVG document
 */
export function plot({ title, panels }) {
  const heading = wrap(title, 56);
  let top = 14 + heading.length * 22;
  const drawn = panels.map((panel) => {
    const { parts, height } = drawLines(panel);
    const group = `<g transform="translate(0,${top})">\n${parts.join("\n")}\n</g>`;
    top += height;
    return group;
  });
  const height = top + 4;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeMarkup(title)}">`,
    `<style>${style()}</style>`,
    `<rect class="ground" width="${width}" height="${height}" rx="6"/>`,
    ...heading.map((line, index) => text(16, 26 + index * 22, line, "heading")),
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

function drawLines({ title, xTitle, xs, lines }) {
  const scale = ticksUpTo(Math.max(...lines.flatMap(({ values }) => values.filter((value) => value))));
  const top = 36;
  const bottom = top + plotHeight;
  const xAt = (index) => left + 20 + (index * (right - left - 40)) / Math.max(1, xs.length - 1);
  const yAt = (value) => bottom - (value / scale.at(-1)) * plotHeight;
  const parts = [text(16, 20, title, "strong")];
  for (const tick of scale) {
    parts.push(`<path class="grid" d="M${left},${yAt(tick)}H${right}"/>`);
    parts.push(text(left - 8, yAt(tick) + 5, tick, "end"));
  }
  xs.forEach((x, index) => {
    parts.push(text(xAt(index), bottom + 20, x, "middle"));
  });
  parts.push(text((left + right) / 2, bottom + 40, xTitle, "middle"));
  const ends = lines.map(({ values }) => {
    const last = values.findLastIndex((value) => value !== undefined);
    return { x: xAt(last), y: yAt(values[last]) };
  });
  const labels = apart(ends.map(({ y }) => y));
  lines.forEach(({ name, values }, index) => {
    const { dash, marker } = lineStyles[index];
    const points = values.flatMap((value, at) => (value === undefined ? [] : [[xAt(at), yAt(value)]]));
    const path = points.map((point) => point.map((each) => each.toFixed(1)).join(",")).join("L");
    parts.push(`<path class="line s${index}" stroke-dasharray="${dash}" d="M${path}"/>`);
    for (const [x, y] of points) {
      const place = `translate(${x.toFixed(1)},${y.toFixed(1)})`;
      parts.push(`<path class="mark s${index}" transform="${place}" d="${marker}"/>`);
    }
    const { x, y } = ends[index];
    parts.push(`<path class="lead" d="M${x + 7},${y}L${right + 8},${labels[index]}"/>`);
    parts.push(text(right + 12, labels[index] + 5, name, `name s${index}`));
  });
  return { parts, height: bottom + 60 };
}

/** Round numbers from 0 to at least `max`, four to six of them. */
export function ticksUpTo(max) {
  const magnitude = 10 ** Math.floor(Math.log10(max / 4));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((each) => max / each <= 5);
  const count = Math.ceil(max / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(6)));
}

/** The same positions in the same order, moved so far that labels do not overlap. */
export function apart(positions, distance = 19) {
  const order = positions.map((_, index) => index).sort((a, b) => positions[a] - positions[b]);
  const moved = [...positions];
  for (let at = 1; at < order.length; at += 1) {
    moved[order[at]] = Math.max(moved[order[at]], moved[order[at - 1]] + distance);
  }
  return moved;
}

function wrap(words, most) {
  const lines = [""];
  for (const word of words.split(" ")) {
    if (lines.at(-1).length + word.length > most) lines.push("");
    lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
  }
  return lines;
}

function text(x, y, content, classes) {
  return `<text class="${classes}" x="${x}" y="${y}">${escapeMarkup(String(content))}</text>`;
}

function style() {
  const colours = (mode) =>
    lineStyles
      .map(
        (each, index) =>
          `.line.s${index}{stroke:${each[mode]}}.mark.s${index},.name.s${index}{fill:${each[mode]}}`,
      )
      .join("");
  return [
    "text{font:16px system-ui,sans-serif;fill:#1f2328}.heading{font-size:18px;font-weight:600}.strong{font-weight:600}",
    ".end{text-anchor:end}.middle{text-anchor:middle}.line{fill:none;stroke-width:2.5}.lead{stroke:#8c959f;stroke-width:.7}",
    ".ground{fill:#fff}.grid{stroke:#d1d9e0}",
    colours("light"),
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.ground{fill:#0d1117}.grid{stroke:#30363d}",
    `${colours("dark")}}`,
  ].join("");
}
