import { markOf, vote } from "./events.ts";
import { px, text, textWidth } from "./pen.ts";
import type { Call, Shapes } from "./shapes.ts";

/** What one sign means. */
interface Entry {
  readonly label: string;
  /** Its markup, in a box of 30 × 18 px, or as wide as it says. */
  readonly sign: string;
  readonly width?: number;
  /** Whether a picture has it. Default: every one has. */
  isIn?(shapes: Shapes): boolean;
}

const line = (kinds: string, end: string): string => `<path class="flight ${kinds}" d="M2 3L26 15"/>${end}`;
const arrow = `<path class="head" d="M27 15.5L19.3 15.2L22.4 9.4Z"/>`;
const bar = (kind: string, more = ""): string =>
  `<rect class="${kind}" x="1" y="2" width="27" height="14" rx="2"/>${more}`;
const stop = `<path class="stop" d="M21 18L26 9"/>`;
const cross = `<path class="cross-ink" d="M20 9l8 8m0 -8l-8 8"/>`;
const expiry = `<line class="expiry" x1="28" y1="0" x2="28" y2="18"/>`;
const hatched = `<rect class="fault" x="1" y="1" width="28" height="16"/><rect x="1" y="1" width="28" height="16" fill="url(#picture-hatch)"/>`;
const verdict = (kind: string): string =>
  `<g class="${kind}"><line class="verdict" x1="15" y1="0" x2="15" y2="18"/></g>`;
const mark = (outcome: Call["outcome"]): string => markOf(outcome, 8, 9);

const ofCall =
  (outcome: Call["outcome"]) =>
  ({ calls }: Shapes): boolean =>
    calls.some((call) => call.outcome === outcome);

const entries: readonly Entry[] = [
  { label: "request", sign: line("", arrow) },
  { label: "reply", sign: line("reply", arrow) },
  {
    label: "reply: refused",
    sign: line("reply", stop),
    isIn: ({ exchanges }) => exchanges.some(({ answered }) => answered?.outcome !== "granted"),
  },
  { label: "lost", sign: line("", cross), isIn: ({ exchanges }) => exchanges.some(({ lost }) => lost) },
  { label: "endpoint granted it", sign: vote(6, 9, "granted"), width: 12 },
  {
    label: "endpoint refused it",
    sign: vote(6, 9, "held"),
    width: 12,
    isIn: ({ exchanges }) => exchanges.some(({ executed }) => executed?.outcome === "held"),
  },
  { label: "stored, with its holder", sign: bar("bar", text(7, 13, "A", "bar-text")) },
  {
    label: "… until it expires",
    sign: bar("bar", expiry),
    isIn: ({ bars }) => bars.some(({ end }) => end === "expired"),
  },
  {
    label: "lock valid",
    sign: bar("bar validity"),
    isIn: ({ bars }) => bars.some(({ kind }) => kind === "validity"),
  },
  {
    label: "taken off for drift",
    sign: bar("unsafe"),
    isIn: ({ bars }) => bars.some(({ unsafe }) => unsafe !== undefined),
  },
  { label: "paused or frozen", sign: hatched, isIn: ({ pauses }) => pauses.length > 0 },
  { label: "result: granted", sign: mark("granted"), width: 16, isIn: ofCall("granted") },
  { label: "result: refused", sign: mark("held"), width: 16, isIn: ofCall("held") },
  { label: "result: unavailable", sign: mark("error"), width: 16, isIn: ofCall("error") },
  {
    label: "violated",
    sign: verdict("broken"),
    isIn: ({ verdicts }) => verdicts.some(({ phase }) => phase === "violated"),
  },
  {
    label: "upheld",
    sign: verdict("upheld"),
    isIn: ({ verdicts }) => verdicts.some(({ phase }) => phase === "upheld"),
  },
];

/** The signs that these pictures have, in as many lines as the width needs. */
export function drawLegend(
  pictures: readonly Shapes[],
  width: number,
): { readonly markup: string; readonly height: number } {
  const start = 12;
  let [x, y] = [start, 6];
  const used = entries.filter(({ isIn }) => !isIn || pictures.some(isIn));
  const parts = used.map(({ label, sign, width: wide = 30 }) => {
    const own = wide + 6 + textWidth(label) + 16;
    if (x > start && x + own > width - 4) [x, y] = [start, y + 24];
    const markup = `<g transform="translate(${px(x)} ${px(y)})">${sign}${text(wide + 6, 13, label, "")}</g>`;
    x += own;
    return markup;
  });
  return { markup: `<g class="c0">${parts.join("")}</g>`, height: y + 30 };
}
