/** What {@link html} inserts: markup as it is, anything else escaped; `undefined` and `null` insert nothing. */
export type Insert = string | number | null | undefined | Markup | readonly Markup[];

/** Text that is HTML already. Made only by {@link html}. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Inserts values into HTML. Each is escaped (also for quoted attributes) unless it is markup itself.
 *
 * @example
 * html`<td title="${name}">${name}</td>`.text;
 */
export function html(strings: TemplateStringsArray, ...values: readonly Insert[]): Markup {
  const parts = values.map((value) => {
    if (value === null || value === undefined) return "";
    if (value instanceof Markup) return value.text;
    if (typeof value === "object") return value.map((markup) => markup.text).join("\n");
    return escaped(String(value));
  });
  return new Markup(String.raw(strings, ...parts));
}

const entityOf: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entityOf[character] ?? "");
}
