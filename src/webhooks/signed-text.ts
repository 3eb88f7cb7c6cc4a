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

/**
 * Parses a template. Only templates that can be read in one way are accepted: the time has a fixed length, and an id
 * ends at the character behind it. Otherwise parts of a captured delivery could be moved from one field into
 * another, and the signature would still hold.
 *
 * @throws {TypeError} the template does not end with its only `{body}`, repeats a placeholder, has another one or a
 * stray brace, or has no text behind `{id}`
 */
export function parseSignedText(template: unknown): SignedText {
  // Texts and names of placeholders by turns: "{id}.{body}" gives ["", "id", ".", "body", ""].
  const parts = String(template).split(/\{(id|time|body)\}/);
  const names = parts.filter((_, index) => index % 2 === 1);
  const texts = parts.filter((_, index) => index % 2 === 0);
  const wellFormed = new Set(names).size === names.length && !texts.some((text) => /[{}]/.test(text));
  if (typeof template !== "string" || !wellFormed || names.at(-1) !== "body" || texts.at(-1) !== "") {
    throw new TypeError("signedText must end with {body}, with at most one {id} and one {time} before it");
  }
  const idEnd = names.includes("id") ? texts[names.indexOf("id") + 1]?.[0] : undefined;
  if (names.includes("id") && idEnd === undefined) {
    throw new TypeError("signedText must have a character behind {id} that ends the id");
  }
  return {
    coversId: names.includes("id"),
    coversTime: names.includes("time"),
    idEnd,
    before({ id = "", time = "" }) {
      const values: Readonly<Record<string, string>> = { id, time, body: "" };
      return texts.map((text, index) => text + (values[names[index] ?? ""] ?? "")).join("");
    },
  };
}
