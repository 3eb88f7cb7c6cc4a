import { type Box, barBox, type Frame, faultBox, flightLine, type Line, resultPoint } from "./frame.ts";
import type { Shapes } from "./shapes.ts";
import type { Narrator, Note } from "./words.ts";

// What the pointer or the keyboard is on: computed, so that a picture needs no listener on each of its shapes.

/** One thing that can be looked at. */
export interface Item {
  /** When it begins. */
  readonly time: number;
  note(narrator: Narrator): Note;
  /** Where it is drawn. */
  box(frame: Frame): Box;
  /** How far away a point is, in px; `undefined`: too far. */
  distance(x: number, y: number, frame: Frame): number | undefined;
}

/** Everything that can be looked at, from top (what is drawn over others) to bottom. */
export function itemsOf(shapes: Shapes): Item[] {
  const { violations, calls, unsent, flights, bars, faults } = shapes;
  return [
    ...violations.map((violation): Item => {
      const box = (frame: Frame) => ({
        x: frame.x(violation.time) - 5,
        y: frame.flagTop,
        width: 10,
        height: frame.bottom - frame.flagTop,
      });
      return { time: violation.time, note: (words) => words.violation(violation), box, distance: inBox(box) };
    }),
    ...calls.map((call): Item => {
      const box = (frame: Frame) => {
        const { x, y } = resultPoint(call, frame);
        return { x: x - 9, y: y - 9, width: 18, height: 18 };
      };
      return { time: call.from, note: (words) => words.call(call), box, distance: inBox(box) };
    }),
    ...unsent.map((execution): Item => {
      const box = (frame: Frame) => ({
        x: frame.x(execution.time) - 5,
        y: frame.lanes[execution.lane]!.axis - 5,
        width: 10,
        height: 10,
      });
      return {
        time: execution.time,
        note: (words) => words.request(execution.history),
        box,
        distance: inBox(box),
      };
    }),
    ...flights.map((flight): Item => {
      const line = (frame: Frame) => flightLine(flight, frame);
      return {
        time: flight.from.time,
        note: (words) => words.flight(flight),
        box: (frame) => around(line(frame)),
        distance: (x, y, frame) => near(toLine(x, y, line(frame)), 6),
      };
    }),
    ...bars.map((bar): Item => {
      const box = (frame: Frame) => barBox(bar, frame);
      return { time: bar.from, note: (words) => words.bar(bar), box, distance: inBox(box) };
    }),
    ...faults.map((fault): Item => {
      const box = (frame: Frame) => faultBox(fault, frame);
      return { time: fault.from, note: (words) => words.fault(fault), box, distance: inBox(box) };
    }),
  ];
}

/** The thing at a point: of lines the nearest, then what is drawn on top. */
export function itemAt(items: readonly Item[], x: number, y: number, frame: Frame): Item | undefined {
  let best: { item: Item; distance: number } | undefined;
  for (const item of items) {
    const distance = item.distance(x, y, frame);
    // What has an area is at the distance 0: the first that contains the point wins over a line that is not nearer.
    if (
      distance !== undefined &&
      (best === undefined || (best.distance > 0 && 0 < distance && distance < best.distance))
    ) {
      best = { item, distance };
    }
  }
  return best?.item;
}

const near = (distance: number, most: number): number | undefined =>
  distance <= most ? Math.max(distance, 0.001) : undefined;

const inBox =
  (box: (frame: Frame) => Box) =>
  (x: number, y: number, frame: Frame): number | undefined => {
    const { x: left, y: top, width, height } = box(frame);
    return x >= left - 2 && x <= left + width + 2 && y >= top && y <= top + height ? 0 : undefined;
  };

function around({ x1, y1, x2, y2 }: Line): Box {
  const [x, y] = [Math.min(x1, x2) - 3, Math.min(y1, y2) - 3];
  return { x, y, width: Math.abs(x2 - x1) + 6, height: Math.abs(y2 - y1) + 6 };
}

function toLine(x: number, y: number, { x1, y1, x2, y2 }: Line): number {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const part = ((x - x1) * dx + (y - y1) * dy) / (dx * dx + dy * dy || 1);
  const inside = Math.min(1, Math.max(0, part));
  return Math.hypot(x - x1 - inside * dx, y - y1 - inside * dy);
}
