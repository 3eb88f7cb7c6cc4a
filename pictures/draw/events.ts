import type { Outcome } from "../timeline.ts";
import type { Bar } from "./bars.ts";
import { across, barBox, type Pen } from "./frame.ts";
import { px, text, textWidth, tooltip } from "./pen.ts";
import type { Call, Exchange } from "./shapes.ts";
import { ofBar, ofCall, ofExchange, resultOf, tallyOf } from "./words.ts";

// What happened: bars, requests and replies, calls with their results.

/** A group in the colour of a client. */
const coloured = (client: string, { frame }: Pen, markup: string): string =>
  `<g class="${frame.lanes.get(client)!.colour}">${markup}</g>`;

/** What is stored, and what is valid. */
export const drawBars = (pen: Pen): string => pen.shapes.bars.map((bar) => drawBar(bar, pen)).join("");

function drawBar(bar: Bar, pen: Pen): string {
  const { frame } = pen;
  const { x, y, width, height } = barBox(bar, frame);
  const rect = (kind: string, place: { x: number; width: number }, round: number) =>
    `<rect class="${kind}" x="${px(place.x)}" y="${px(y)}" width="${px(place.width)}" height="${height}" rx="${round}"/>`;
  const line = (kind: string, at: string, beyond: number) =>
    `<line class="${kind}" x1="${at}" y1="${px(y - beyond)}" x2="${at}" y2="${px(y + height + beyond)}"/>`;
  const unsafe = bar.unsafe === undefined ? undefined : across(bar.unsafe, bar.to, frame);
  return coloured(
    bar.holder,
    pen,
    [
      tooltip(ofBar(bar)),
      rect(bar.kind === "validity" ? "bar validity" : "bar", { x, width }, 2),
      unsafe ? rect("paper", unsafe, 0) + rect("unsafe", unsafe, 0) : "",
      ...bar.refreshed.map((time) => line("tick", px(frame.x(time)), -1)),
      bar.end === "expired" ? line("expiry", px(x + width), 3) : "",
    ].join(""),
  );
}

/** The texts of bars, before the lines that cross them. */
export const drawBarTexts = (pen: Pen): string => pen.shapes.bars.map((bar) => barText(bar, pen)).join("");

/** The longest text that has room in the bar. */
function barText(bar: Bar, pen: Pen): string {
  const { shapes, frame, labels } = pen;
  const { x, y, width } = barBox(bar, frame);
  const start = x + 5;
  const end = bar.unsafe === undefined ? x + width : frame.x(bar.unsafe);
  const room = Math.min(end, frame.right) - start - 3;
  const letter = bar.kind === "stored" ? frame.lanes.get(bar.holder)!.letter : "";
  const number = bar.fence === undefined ? "" : `${bar.fence}`;
  const fence = number && `fence ${number}`;
  const joined = (...parts: string[]) => parts.filter((part) => part !== "").join(" · ");
  const choices = [
    joined(letter || "valid", shapes.namesKeys ? bar.key : "", fence),
    joined(letter || "valid", fence),
    joined(letter, number),
  ];
  const value = choices.find((one) => one !== "" && textWidth(one, 11.5) <= room);
  if (value === undefined || !labels.take(start, y + 12.5, value)) return "";
  return coloured(bar.holder, pen, text(start, y + 12.5, value, `bar-text ${bar.kind}-text`));
}

interface Line {
  readonly x1: number;
  readonly y1: number;
  readonly x2: number;
  readonly y2: number;
}

/** How far something that is lost gets. */
const lostAt = 0.62;

const pathOf = ({ x1, y1, x2, y2 }: Line): string => `M${px(x1)} ${px(y1)}L${px(x2)} ${px(y2)}`;

/** Requests and replies on their way: slanted lines. */
export const drawExchanges = (pen: Pen): string =>
  pen.shapes.exchanges.map((exchange) => drawRequest(exchange, pen) + drawReply(exchange, pen)).join("");

/** The line of a request, or as far as it would have come. */
function requestLine({ client, endpoint, sent, executed, lost }: Exchange, { frame }: Pen): Line {
  return {
    x1: frame.x(sent),
    y1: frame.lanes.get(client)!.axis,
    x2: frame.x(executed?.time ?? lost!.until),
    y2: frame.lanes.get(endpoint)!.axis,
  };
}

/** Where a request was lost. */
function lostPoint(exchange: Exchange, pen: Pen): { x: number; y: number } {
  const { x1, y1, x2, y2 } = requestLine(exchange, pen);
  return { x: x1 + (x2 - x1) * lostAt, y: y1 + (y2 - y1) * lostAt };
}

function drawRequest(exchange: Exchange, pen: Pen): string {
  const { client, executed } = exchange;
  const whole = requestLine(exchange, pen);
  const about = tooltip(ofExchange(exchange));
  const request = (line: Line) => `<path class="flight request" d="${pathOf(line)}"/>`;
  if (executed) {
    return coloured(
      client,
      pen,
      about + request(whole) + headOf(whole) + vote(whole.x2, whole.y2, executed.outcome),
    );
  }
  const { x, y } = lostPoint(exchange, pen);
  const rest = `<path class="flight rest" d="${pathOf({ ...whole, x1: x, y1: y })}"/>`;
  const cross = `M${px(x - 4.5)} ${px(y - 4.5)}l9 9m0 -9l-9 9`;
  const crossed = `<path class="cross" d="${cross}"/><path class="cross-ink" d="${cross}"/>`;
  return coloured(client, pen, about + request({ ...whole, x2: x, y2: y }) + rest + crossed);
}

function drawReply(exchange: Exchange, pen: Pen): string {
  const { client, executed, answered } = exchange;
  if (!executed || !answered) return "";
  const { x2: x1, y2: y1, y1: y2 } = requestLine(exchange, pen);
  const line = { x1, y1, x2: pen.frame.x(answered.time), y2 };
  const end = answered.outcome === "granted" ? headOf(line) : stopOf(line);
  const path = `<path class="flight reply" d="${pathOf(line)}"/>`;
  return coloured(client, pen, tooltip(ofExchange(exchange)) + path + end);
}

/** The word beside a request that was lost. */
export function drawRemarks(pen: Pen): string {
  const lost = pen.shapes.exchanges.filter((exchange) => exchange.lost);
  return lost
    .map((exchange) => {
      const { x, y } = lostPoint(exchange, pen);
      const places = [x + 9, x - 9 - textWidth("lost")];
      const place = places.find((one) => pen.labels.take(one, y + 4, "lost"));
      return place === undefined ? "" : text(place, y + 4, "lost", "remark halo");
    })
    .join("");
}

/** An arrow. */
function headOf(line: Line): string {
  const { x2, y2 } = line;
  const [ux, uy] = directionOf(line);
  const [bx, by] = [x2 - 7 * ux, y2 - 7 * uy];
  return `<path class="head" d="M${px(x2)} ${px(y2)}L${px(bx - 3 * uy)} ${px(by + 3 * ux)}L${px(bx + 3 * uy)} ${px(by - 3 * ux)}Z"/>`;
}

/** The bar at the end of a refusal. */
function stopOf(line: Line): string {
  const [ux, uy] = directionOf(line);
  const [cx, cy] = [line.x2 - 3 * ux, line.y2 - 3 * uy];
  return `<path class="stop" d="M${px(cx - 4.5 * uy)} ${px(cy + 4.5 * ux)}L${px(cx + 4.5 * uy)} ${px(cy - 4.5 * ux)}"/>`;
}

function directionOf({ x1, y1, x2, y2 }: Line): [x: number, y: number] {
  const length = Math.hypot(x2 - x1, y2 - y1);
  return [(x2 - x1) / length, (y2 - y1) / length];
}

/** An endpoint's answer, where it was given: filled if granted. */
export const vote = (x: number, y: number, outcome: Outcome): string =>
  `<circle class="vote${outcome === "granted" ? "" : " no"}" cx="${px(x)}" cy="${px(y)}" r="3"/>`;

/** Calls on their clients' lanes, with the marks of their results. */
export const drawCalls = (pen: Pen): string => pen.shapes.calls.map((call) => drawCall(call, pen)).join("");

function drawCall(call: Call, pen: Pen): string {
  const { frame } = pen;
  const { axis } = frame.lanes.get(call.client)!;
  const { x, width } = across(call.from, call.time, frame);
  const line = `<line class="call" x1="${px(x)}" y1="${axis}" x2="${px(x + width)}" y2="${axis}"/>`;
  const mark = markOf(call.outcome, frame.x(call.time), axis);
  return coloured(call.client, pen, tooltip(ofCall(call)) + line + mark + callText(call, pen));
}

/** The mark of a result: each has a shape of its own. */
export function markOf(outcome: Call["outcome"], x: number, y: number): string {
  return `<g transform="translate(${px(x)} ${px(y)})">${marks[outcome]}</g>`;
}

const marks: Readonly<Record<Call["outcome"], string>> = {
  granted: `<circle class="result granted" r="6"/><path class="mark" d="M-2.8 .2l2 2l3.6 -4.2"/>`,
  held: `<rect class="result refused" x="-6" y="-6" width="12" height="12"/><path class="dark-mark" d="M-3 0h6"/>`,
  error: `<path class="result refused" d="M0 -7L7.5 6H-7.5Z"/><path class="dark-mark" d="M0 -2.5v4m0 1.4v1.6"/>`,
};

/** What a call was, and how it ended: at its beginning, or after its mark if there is no room; else its result only. */
function callText(call: Call, { frame, labels }: Pen): string {
  const y = frame.lanes.get(call.client)!.axis - 10;
  const result = resultOf(call);
  const whole = [`${call.operation}: ${result}`, tallyOf(call)].filter(Boolean).join(" ");
  for (const value of [whole, `${call.operation}: ${result}`, result]) {
    const inside = (x: number) => Math.min(Math.max(x, frame.left + 2), frame.right - textWidth(value) - 2);
    const places = [inside(frame.x(call.from)), inside(frame.x(call.time) - 4)];
    const x = places.find((place) => labels.take(place, y, value));
    if (x !== undefined) return text(x, y, value, "halo");
  }
  return "";
}
