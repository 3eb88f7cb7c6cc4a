// Text for people: everything that comes from Redis or from a command line passes through here before it is printed.

/** Characters that could move the cursor, set colours, hide text or reverse it. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text as one line for a terminal: characters that could control it are escaped. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** A value as one line of JSON. Control characters are escaped, so that the text may be printed to a terminal as well. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(unprintable, (character) =>
    character.replace(/[\s\S]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`),
  );
}

/** A duration: `812 ms`, `8.2 s`, `3 min 5 s`, `2 h 4 min`, `6 d 1 h`. */
export function duration(ms: number): string {
  const whole = Math.round(ms);
  if (whole < 1_000) return `${whole} ms`;
  if (whole < 60_000) return `${(Math.floor(whole / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(whole / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A count with its noun: `1 endpoint`, `3 endpoints`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** The least room that the last cell of a row has, however narrow the terminal. */
const leastRoom = 24;

/** Text for people: paragraphs, and rows whose cells stand below those of the rows next to it. */
export type Text = readonly (string | readonly string[])[];

/** Text in lines of at most `width` characters. The last cell of a row goes on below itself. */
export function layout(text: Text, width: number = Infinity): string[] {
  let widths: number[] = [];
  return text.flatMap((row, index) => {
    if (typeof row === "string") return wrapped(printable(row), width);
    if (typeof text[index - 1] !== "object") widths = widthsFrom(text.slice(index));
    const cells = row.map(printable);
    const padded = cells.slice(0, -1).map((cell, column) => `${cell.padEnd(widths[column]!)}  `);
    const before = padded.join("");
    const lines = wrapped(cells.at(-1) ?? "", Math.max(width - before.length, leastRoom));
    return lines.map((line, below) => ((below === 0 ? before : " ".repeat(before.length)) + line).trimEnd());
  });
}

/** How wide the cells of the first rows are, up to the next paragraph, without the last cell of each. */
function widthsFrom(text: Text): number[] {
  const widths: number[] = [];
  for (const row of text) {
    if (typeof row === "string") break;
    for (const [column, cell] of row.slice(0, -1).entries()) {
      widths[column] = Math.max(widths[column] ?? 0, printable(cell).length);
    }
  }
  return widths;
}

/** Text in lines of at most so many characters. A longer word has a line of its own. */
function wrapped(text: string, width: number): string[] {
  if (text.length <= width) return [text];
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
