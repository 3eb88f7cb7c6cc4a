import { markOf, vote } from "./draw-events.ts";
import { textWidth } from "./frame.ts";
import { px, text } from "./pen.ts";
import type { Shapes } from "./shapes.ts";

/** What one sign means. */
interface Entry {
  readonly label: string;
  /** Its markup, in a box of 30 × 18 px, or as wide as it says. */
  readonly sign: string;
  readonly width?: number;
  used(shapes: Shapes): boolean;
}

const line = (kinds: string, end: string): string => `<path class="flight ${kinds}" d="M2 3L26 15"/>${end}`;
const arrow = `<path class="head" d="M27 15.5L19.3 15.2L22.4 9.4Z"/>`;
const cross = `<path class="cross-ink" d="M20 9l8 8m0 -8l-8 8"/>`;
const bar = (kind: string, more = ""): string =>
  `<rect class="${kind}" x="1" y="2" width="27" height="14" rx="2"/>${more}`;
const mark = (outcome: Parameters<typeof markOf>[0]): string => markOf(outcome, { x: 8, y: 9 });
const ofCall =
  (outcome: string) =>
  ({ calls }: Shapes): boolean =>
    calls.some((call) => call.outcome === outcome);

const entries: readonly Entry[] = [
  { label: "request", sign: line("", arrow), used: ({ flights }) => flights.length > 0 },
  {
    label: "reply",
    sign: line("reply", arrow),
    used: ({ flights }) => flights.some(({ kind }) => kind === "reply"),
  },
  {
    label: "reply: refused",
    sign: line("reply", `<path class="stop" d="M21 18L26 9"/>`),
    used: ({ flights }) =>
      flights.some(({ kind, outcome }) => kind === "reply" && outcome !== "granted" && outcome !== undefined),
  },
  {
    label: "lost",
    sign: line("", cross),
    used: ({ flights }) => flights.some(({ fate }) => fate === "lost"),
  },
  { label: "late", sign: line("late", arrow), used: ({ flights }) => flights.some(({ late }) => late) },
  {
    label: "endpoint granted it",
    sign: vote(6, 9, "granted"),
    width: 12,
    used: ({ flights }) => flights.length > 0,
  },
  {
    label: "endpoint refused it",
    sign: vote(6, 9, "held"),
    width: 12,
    used: ({ flights }) => flights.some(({ history }) => history.executed?.outcome === "held"),
  },
  {
    label: "stored, with its holder",
    sign: bar("bar", text(7, 13, "A", "bar-text")),
    used: ({ bars }) => bars.some(({ kind }) => kind === "stored"),
  },
  {
    label: "… until it expires",
    sign: bar("bar", `<line class="expiry" x1="28" y1="0" x2="28" y2="18"/>`),
    used: ({ bars }) => bars.some(({ end }) => end === "expired"),
  },
  {
    label: "lock valid",
    sign: bar("bar validity"),
    used: ({ bars }) => bars.some(({ kind }) => kind === "validity"),
  },
  {
    label: "taken off for drift",
    sign: bar("unsafe"),
    used: ({ bars }) => bars.some(({ unsafe }) => unsafe.length > 0),
  },
  {
    label: "paused or frozen",
    sign: `<rect class="fault" x="1" y="1" width="28" height="16"/><rect x="1" y="1" width="28" height="16" fill="url(#picture-hatch)"/>`,
    used: ({ faults }) => faults.some(({ hatched }) => hatched),
  },
  {
    label: "fault",
    sign: `<rect class="fault" x="1" y="1" width="28" height="16"/><path class="fault-edge" d="M1 1v16M29 1v16"/>`,
    used: ({ faults }) => faults.some(({ hatched }) => !hatched),
  },
  { label: "result: granted", sign: mark("granted"), width: 16, used: ofCall("granted") },
  { label: "result: refused", sign: mark("held"), width: 16, used: ofCall("held") },
  { label: "result: gone", sign: mark("gone"), width: 16, used: ofCall("gone") },
  { label: "result: unavailable", sign: mark("error"), width: 16, used: ofCall("error") },
  {
    label: "violated",
    sign: `<g class="broken"><line class="verdict" x1="15" y1="0" x2="15" y2="18"/></g>`,
    used: ({ verdicts }) => verdicts.some(({ isBroken }) => isBroken),
  },
  {
    label: "upheld",
    sign: `<g class="upheld"><line class="verdict" x1="15" y1="0" x2="15" y2="18"/></g>`,
    used: ({ verdicts }) => verdicts.some(({ isBroken }) => !isBroken),
  },
];

/** The signs that these pictures have, in as many lines as the width needs. */
export function drawLegend(
  pictures: readonly Shapes[],
  width: number,
): { readonly markup: string; readonly height: number } {
  const used = entries.filter((entry) => pictures.some((shapes) => entry.used(shapes)));
  if (used.length === 0) return { markup: "", height: 8 };
  const start = 12;
  let [x, y] = [start, 6];
  const parts = used.map(({ label, sign, width: wide = 30 }) => {
    const own = wide + 6 + textWidth(label) + 16;
    if (x > start && x + own > width - 4) [x, y] = [start, y + 24];
    const markup = `<g transform="translate(${px(x)} ${px(y)})">${sign}${text(wide + 6, 13, label, "")}</g>`;
    x += own;
    return markup;
  });
  return { markup: `<g class="c0">${parts.join("")}</g>`, height: y + 30 };
}
