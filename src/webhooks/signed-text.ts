/** What a sender signs, from a template such as `{id}.{time}.{body}`. */
export interface SignedText {
  /** Whether the template contains `{id}`. */
  readonly coversId: boolean;
  /** Whether the template contains `{time}`. */
  readonly coversTime: boolean;
  /** The character after `{id}`, which ids must not contain. */
  readonly idEnd: string | undefined;
  /** The text in front of the body. */
  before(values: { readonly id?: string | undefined; readonly time?: string | undefined }): string;
}

/** Parses a template that {@link checkSignedText} accepts. */
export function parseSignedText(template: string): SignedText {
  const { names, texts } = split(template);
  return {
    coversId: names.includes("id"),
    coversTime: names.includes("time"),
    idEnd: names.includes("id") ? texts[names.indexOf("id") + 1]![0] : undefined,
    before({ id, time }) {
      const values: Readonly<Record<string, string | undefined>> = { id, time };
      // Behind the last text there is no name.
      return texts.map((text, index) => text + (values[names[index]!] ?? "")).join("");
    },
  };
}

/**
 * Accepts only templates that can be read in one way: the time has a fixed length, and an id ends at the character
 * behind it. Otherwise parts of a captured delivery could be moved from one field into another, and the signature would
 * still hold.
 *
 * @throws {TypeError} the template does not end with its only `{body}`, repeats a placeholder, has another one or a
 * stray brace, or has no text behind `{id}`
 */
export function checkSignedText(template: unknown): void {
  const { names, texts } = split(String(template));
  const wellFormed = new Set(names).size === names.length && !texts.some((text) => /[{}]/.test(text));
  if (typeof template !== "string" || !wellFormed || names.at(-1) !== "body" || texts.at(-1) !== "") {
    throw new TypeError("signedText must end with {body}, with at most one {id} and one {time} before it");
  }
  if (names.includes("id") && parseSignedText(template).idEnd === undefined) {
    throw new TypeError("signedText must have a character behind {id} that ends the id");
  }
}

/** The names of a template's placeholders, and the texts before and behind each. */
function split(template: string): { readonly names: readonly string[]; readonly texts: readonly string[] } {
  // Texts and names by turns: "{id}.{body}" gives ["", "id", ".", "body", ""].
  const parts = template.split(/\{(id|time|body)\}/);
  return {
    names: parts.filter((_, index) => index % 2 === 1),
    texts: parts.filter((_, index) => index % 2 === 0),
  };
}
