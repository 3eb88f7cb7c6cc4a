import { colourClass } from "./draw-lanes.ts";
import { across, barBox, flightLine, type Line, restLine, resultPoint, textWidth, visible } from "./frame.ts";
import { type Pen, px, text, tooltip } from "./pen.ts";
import type { Bar, Call, Flight, Span } from "./shapes.ts";
import type { Outcome } from "./timeline.ts";
import { resultOf, tallyOf } from "./words.ts";

// What happened: bars, requests and replies, calls with their results.

const colourOf = (lane: number, { shapes }: Pen): string => colourClass(shapes.lanes[lane]?.colour ?? -1);

/** What is stored, and what is valid. */
export function drawBars(pen: Pen): string {
  return pen.shapes.bars
    .filter((bar) => visible(bar, pen.frame))
    .map((bar) => drawBar(bar, pen))
    .join("");
}

function drawBar(bar: Bar, pen: Pen): string {
  const { frame } = pen;
  const { x, y, width, height } = barBox(bar, frame);
  const rect = (kind: string, place: { x: number; width: number }, round = 2) =>
    `<rect class="${kind}" x="${px(place.x)}" y="${px(y)}" width="${px(place.width)}" height="${height}" rx="${round}"/>`;
  const marked = width >= 12;
  const unsafe = !marked
    ? []
    : bar.unsafe
        .filter((span) => visible(span, frame))
        .map(
          (span) =>
            `${rect("paper", across(span.from, span.to, frame), 0)}${rect("unsafe", across(span.from, span.to, frame), 0)}`,
        );
  const ticks = !marked ? [] : bar.refreshed.filter((time) => visible({ from: time, to: time }, frame));
  const marks = ticks.map((time) => {
    const at = px(frame.x(time));
    return `<line class="tick" x1="${at}" y1="${px(y + 1)}" x2="${at}" y2="${px(y + height - 1)}"/>`;
  });
  const edge = px(x + width);
  const expiry =
    bar.end === "expired" && marked
      ? `<line class="expiry" x1="${edge}" y1="${px(y - 3)}" x2="${edge}" y2="${px(y + height + 3)}"/>`
      : "";
  const kind = bar.kind === "validity" ? "bar validity" : "bar";
  return `<g class="${colourOf(bar.holder, pen)}">${tooltip(pen.narrator.bar(bar))}${rect(kind, { x, width })}${unsafe.join("")}${marks.join("")}${expiry}</g>`;
}

/** The texts of bars, before the lines that cross them. */
export function drawBarTexts(pen: Pen): string {
  return pen.shapes.bars
    .filter((bar) => visible(bar, pen.frame))
    .map((bar) => barText(bar, pen))
    .join("");
}

/** The longest text that has room in the bar. */
function barText(bar: Bar, pen: Pen): string {
  const { shapes, frame, labels } = pen;
  const { x, y, width } = barBox(bar, frame);
  const start = Math.max(x, frame.left) + 5;
  const safeEnd = bar.unsafe[0] && bar.unsafe[0].to >= bar.to ? frame.x(bar.unsafe[0].from) : x + width;
  const room = Math.min(safeEnd, frame.now) - start - 3;
  const stored = bar.kind === "stored";
  const letter = stored ? (shapes.lanes[bar.holder]?.letter ?? "?") : "";
  const key = shapes.namesKeys ? bar.key : "";
  const fence = bar.fence === undefined ? "" : `fence ${bar.fence}`;
  const number = bar.fence === undefined ? "" : `${bar.fence}`;
  const joined = (...parts: string[]) => parts.filter((part) => part !== "").join(" · ");
  const choices = [
    joined(letter || "valid", key, fence),
    joined(letter || "valid", fence),
    joined(letter, fence),
    joined(letter, number),
    letter || number || "valid",
  ];
  const value = choices.find((one) => one !== "" && textWidth(one, 11.5) <= room);
  if (value === undefined || !labels.take(start, y + 12.5, value)) return "";
  return `<g class="${colourOf(bar.holder, pen)}">${text(start, y + 12.5, value, `bar-text ${bar.kind}-text`)}</g>`;
}

/** Requests and replies on their way. */
export function drawFlights(pen: Pen): string {
  const seen = pen.shapes.flights.filter((flight) => visible(timesOf(flight), pen.frame));
  return seen.map((flight) => drawFlight(flight, pen)).join("");
}

const timesOf = ({ from, to }: Flight): Span => ({ from: from.time, to: to.time });

const pathOf = ({ x1, y1, x2, y2 }: Line): string => `M${px(x1)} ${px(y1)}L${px(x2)} ${px(y2)}`;

function drawFlight(flight: Flight, pen: Pen): string {
  const line = flightLine(flight, pen.frame);
  const kinds = ["flight", flight.kind, flight.late ? "late" : "", flight.fate === "open" ? "open" : ""];
  const path = `<path class="${kinds.filter(Boolean).join(" ")}" d="${pathOf(line)}"/>`;
  const rest =
    flight.fate === "lost" ? `<path class="flight rest" d="${pathOf(restLine(flight, pen.frame))}"/>` : "";
  return `<g class="${colourOf(flight.client, pen)}">${tooltip(pen.narrator.flight(flight))}${path}${rest}${endOf(flight, line)}</g>`;
}

/** Words beside lines that are not as usual. */
export function drawRemarks(pen: Pen): string {
  const { shapes, frame, labels } = pen;
  const unusual = shapes.flights.filter(
    (flight) => (flight.fate === "lost" || flight.late) && visible(timesOf(flight), frame),
  );
  return unusual
    .map((flight) => {
      const { x2, y2 } = flightLine(flight, frame);
      const value = flight.fate === "lost" ? "lost" : `late ${flight.kind}`;
      const y = flight.fate === "lost" ? y2 + 4 : y2 - 7;
      const places = [x2 + 9, x2 - 9 - textWidth(value)];
      const x = places.find((place) => labels.take(place, y, value));
      return x === undefined ? "" : text(x, y, value, "remark halo");
    })
    .join("");
}

/** How a line ends: an arrow; a bar for a refusal; a cross where it is lost. */
function endOf({ kind, fate, outcome, history }: Flight, { x1, y1, x2, y2 }: Line): string {
  if (fate === "open") return "";
  if (fate === "lost") {
    const cross = `M${px(x2 - 4.5)} ${px(y2 - 4.5)}l9 9m0 -9l-9 9`;
    return `<path class="cross" d="${cross}"/><path class="cross-ink" d="${cross}"/>`;
  }
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  if (kind === "reply" && outcome !== undefined && outcome !== "granted") {
    const [cx, cy] = [x2 - 3 * ux, y2 - 3 * uy];
    return `<path class="stop" d="M${px(cx - 4.5 * uy)} ${px(cy + 4.5 * ux)}L${px(cx + 4.5 * uy)} ${px(cy - 4.5 * ux)}"/>`;
  }
  const [bx, by] = [x2 - 7 * ux, y2 - 7 * uy];
  const head = `<path class="head" d="M${px(x2)} ${px(y2)}L${px(bx - 3 * uy)} ${px(by + 3 * ux)}L${px(bx + 3 * uy)} ${px(by - 3 * ux)}Z"/>`;
  if (kind === "reply") return head;
  return history.executed ? `${head}${vote(x2, y2, history.executed.outcome)}` : head;
}

/** An endpoint's answer, where it was given: filled if granted. */
export const vote = (x: number, y: number, outcome: Outcome | undefined): string =>
  `<circle class="vote${outcome === undefined || outcome === "granted" ? "" : " no"}" cx="${px(x)}" cy="${px(y)}" r="3"/>`;

/** Calls on their clients' lanes, with the marks of their results. */
export function drawCalls(pen: Pen): string {
  const { shapes, frame, narrator } = pen;
  const seen = shapes.calls.filter((call) => visible(call, frame));
  return seen
    .map((call) => {
      const { axis } = frame.lanes[call.lane]!;
      const { x, width } = across(call.from, call.to, frame);
      const line = `<line class="call" x1="${px(x)}" y1="${axis}" x2="${px(x + width)}" y2="${axis}"/>`;
      const point = resultPoint(call, frame);
      const mark = call.outcome === undefined ? "" : markOf(call.outcome, point);
      return `<g class="${colourOf(call.lane, pen)}">${tooltip(narrator.call(call))}${line}${mark}${callText(call, pen)}</g>`;
    })
    .join("");
}

/** The mark of a result: each has a shape of its own. */
export function markOf(outcome: Outcome, { x, y }: { x: number; y: number }): string {
  return `<g transform="translate(${px(x)} ${px(y)})">${marks[outcome]}</g>`;
}

const marks: Readonly<Record<Outcome, string>> = {
  granted: `<circle class="result granted" r="6"/><path class="mark" d="M-2.8 .2l2 2l3.6 -4.2"/>`,
  held: `<rect class="result refused" x="-6" y="-6" width="12" height="12"/><path class="dark-mark" d="M-3 0h6"/>`,
  gone: `<path class="result refused" d="M0 -7L7 0L0 7L-7 0Z"/><path class="dark-mark" d="M-2.5 0h5"/>`,
  error: `<path class="result refused" d="M0 -7L7.5 6H-7.5Z"/><path class="dark-mark" d="M0 -2.5v4m0 1.4v1.6"/>`,
};

/** What a call was, and how it ended: at its beginning, or after its mark if there is no room; else its result only. */
function callText(call: Call, pen: Pen): string {
  const { frame, labels } = pen;
  const y = frame.lanes[call.lane]!.axis - 10;
  const result = call.outcome === undefined ? "…" : resultOf(call);
  const whole = [`${call.operation}: ${result}`, tallyOf(call)].filter(Boolean).join(" ");
  for (const value of [whole, `${call.operation}: ${result}`, result]) {
    const inside = (x: number) => Math.min(Math.max(x, frame.left + 2), frame.right - textWidth(value) - 2);
    const places = [inside(frame.x(call.from)), inside(frame.x(call.to) - 4)];
    const x = places.find((place) => labels.take(place, y, value));
    if (x !== undefined) return text(x, y, value, "halo");
  }
  return "";
}
