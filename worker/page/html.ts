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

/** What each document begins with, up to its body. */
export function documentHead(title: string, script?: Markup): Markup {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/page.css">
${script}
</head>`;
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
