// Markup of texts, and the room that they need.

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** About how wide a text is: pictures are drawn without a browser. */
export const textWidth = (text: string, size = 11): number => text.length * size * 0.57;

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

/** Makes text of what would be markup. */
const escapeMarkup = (value: string): string => value.replaceAll(/[&<>"']/g, (found) => entities[found]!);

/** A number of px, short. */
export const px = (value: number): string => `${Math.round(value * 10) / 10}`;

/** Markup of a text. */
export function text(x: number, y: number, value: string, kind: string): string {
  return `<text x="${px(x)}" y="${px(y)}" class="${kind}">${escapeMarkup(value)}</text>`;
}

/** Markup of the text about a shape. */
export const tooltip = (value: string): string => `<title>${escapeMarkup(value)}</title>`;
