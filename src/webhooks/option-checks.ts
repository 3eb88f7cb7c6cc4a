/**
 * The message does not repeat the value, because it may be a secret.
 *
 * @throws {TypeError} another form: usually an unset variable, or a secret with a pasted line break
 */
export function requireForm(option: string, value: unknown, form: RegExp = anyText): string {
  const isSecret = /secret|key|token/i.test(option);
  if (!value) {
    const hint = isSecret ? " (is the environment variable set?)" : "";
    throw new TypeError(`${option} is missing or empty${hint}`);
  }
  if (isSecret) refuseNoise(option, String(value));
  if (typeof value === "string" && form.test(value)) return value;
  if (/^\s|\s$/.test(String(value))) {
    throw new TypeError(`${option} must have no line break and no white space at its ends`);
  }
  if (/[\s,;|]/.test(String(value))) {
    throw new TypeError(`${option} must have no white space and no "," ";" "|" in it: several are an array`);
  }
  throw new TypeError(
    `${option} must be a string that matches ${form} (is it the right variable, and all of it?)`,
  );
}

export function requireForms(option: string, value: unknown, form?: RegExp): readonly string[] {
  return listOf(value).map((one) => requireForm(option, one, form));
}

/** An empty list is refused as a value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) && value.length > 0 ? value : [value];
}

const anyText: RegExp = /./s;

/** Otherwise each delivery would be refused without this reason, and everybody knows "undefined". */
export function refuseNoise(option: string, text: string): void {
  const mistakes: readonly (readonly [RegExp, string])[] = [
    [/^(["'`]).*\1$/s, "has quotes around it: take them out of the variable"],
    [
      /^(?:export\s|\w*(?:secret|key|token)\w*\s*=\s*[^\s=])/i,
      'begins with the name of a variable: give only the text behind "="',
    ],
    [/^(?:undefined|null|\[object \w+\])$/, `is the text "${text}" (is the environment variable set?)`],
  ];
  const mistake = mistakes.find(([form]) => form.test(text));
  if (mistake) throw new TypeError(`${option} ${mistake[1]}`);
}

/** Secrets that users choose. Editors and `echo` add line breaks at the ends. */
export const chosen: RegExp = /^(?![\r\n]).*[^\r\n]$/s;

/** Secrets that senders generate. White space comes from pasting. */
export const generated: RegExp = /^[^\s,;|]+$/;

export function urlOption(url: unknown): (request: Request) => string {
  if (typeof url === "function") {
    return (request) => {
      const given: unknown = url(request);
      if (typeof given === "string") return given;
      throw new TypeError(`url must return a string, not ${typeof given}`);
    };
  }
  if (typeof url !== "string" || !/^https?:\/\/\S+$/.test(url)) {
    throw new TypeError("url must be the URL that was given to the sender, or a function that returns it");
  }
  return () => url;
}

export const urlOf = (request: Request): string => request.url;
