// Text for people: everything that comes from Redis or from a command line passes through here before it is printed.

/** Characters that could move the cursor, set colours, hide text or reverse it. */
const unprintable = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Text as one line for a terminal: characters that could control it are escaped. */
export function printable(text: string): string {
  return text.replace(unprintable, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** A value as one line of JSON. The same characters are escaped, so that it may be printed to a terminal as well. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(unprintable, (character) =>
    Array.from({ length: character.length }, (_, index) => {
      return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
    }).join(""),
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

/** `1 of 3 endpoints has`, `2 of 3 endpoints have`. */
export function endpointsHave(count: number, total: number): string {
  return `${count} of ${counted(total, "endpoint")} ${count === 1 ? "has" : "have"}`;
}

/** Labelled lines below a headline. A label may have several lines; without any it is left out. */
export function labelled(
  sections: readonly (readonly [label: string, lines: readonly string[]])[],
): string[] {
  const shown = sections.filter(([, lines]) => lines.length > 0);
  const width = Math.max(...shown.map(([label]) => label.length)) + 2;
  return shown.flatMap(([label, lines]) =>
    lines.map((line, index) => `  ${(index === 0 ? label : "").padEnd(width)}${line}`),
  );
}

/** Text in lines of at most so many characters; a longer word has a line of its own. */
export function wrapped(text: string, width = 100): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Rows whose cells stand below each other. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>(
    (widest, row) => row.map((cell, index) => Math.max(cell.length, widest[index] ?? 0)),
    [],
  );
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** A word as a shell reads it. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
