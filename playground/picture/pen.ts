import { type Box, type Frame, textWidth } from "./frame.ts";
import type { Shapes } from "./shapes.ts";
import type { Narrator, Note } from "./words.ts";

/** What every part of a drawing needs. */
export interface Pen {
  readonly shapes: Shapes;
  readonly frame: Frame;
  readonly labels: Labels;
  readonly narrator: Narrator;
}

/** Where texts are already, so that none is written over another. */
export class Labels {
  readonly #taken: Box[] = [];

  /** Takes the room for a text whose line stands at `y`, if it is free. */
  take(x: number, y: number, value: string, size = 11): boolean {
    const box = { x: x - 3, y: y - size + 1, width: textWidth(value, size) + 6, height: size + 2 };
    const free = this.#taken.every(
      (other) =>
        box.x >= other.x + other.width ||
        other.x >= box.x + box.width ||
        box.y >= other.y + other.height ||
        other.y >= box.y + box.height,
    );
    if (free) this.#taken.push(box);
    return free;
  }
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Makes text of what would be markup, and of characters that XML does not allow. */
export function escapeMarkup(value: string): string {
  return value
    .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
    .replaceAll(/[&<>"']/g, (found) => entities[found]!);
}

/** A number of px, short. */
export const px = (value: number): string => `${Math.round(value * 10) / 10}`;

/** Markup of a text. */
export function text(x: number, y: number, value: string, kind: string): string {
  return `<text x="${px(x)}" y="${px(y)}" class="${kind}">${escapeMarkup(value)}</text>`;
}

/** The tooltip of a shape. */
export function tooltip({ title, lines }: Note): string {
  return `<title>${escapeMarkup([title, ...lines].join("\n"))}</title>`;
}

/** A text that is cut with … if it is too wide. */
export function shortened(value: string, width: number, size = 11): string {
  if (textWidth(value, size) <= width) return value;
  return `${value.slice(0, Math.max(1, Math.floor(width / (size * 0.57)) - 1))}…`;
}
