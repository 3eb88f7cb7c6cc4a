/**
 * A string option of a given form. By default it is any string that is not empty. The message does not repeat the value,
 * which may be a secret.
 *
 * @throws {TypeError} it is anything else: usually a variable that is not set (an empty secret is known to
 * everybody), or a secret that was pasted with a line break, or with quotes
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

/**
 * The strings of an option that takes one or several, at least one.
 *
 * @throws {TypeError} as {@link requireForm} does
 */
export function requireForms(option: string, value: unknown, form?: RegExp): readonly string[] {
  return listOf(value).map((one) => requireForm(option, one, form));
}

/** The values of an option that takes one or several. An empty list becomes a list of it, to be refused as a value. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) && value.length > 0 ? value : [value];
}

const anyText: RegExp = /./s;

/**
 * Refuses a secret or key that is the line of a file, or the text of a variable that is not set: each delivery would
 * otherwise be refused later, without this reason, and everybody knows "undefined".
 *
 * @throws {TypeError} it has quotes or the name of a variable before it, or stands for no value
 */
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

/** The form of secrets that users choose: any text. A line break at an end was added by an editor, or by `echo`. */
export const chosen: RegExp = /^(?![\r\n]).*[^\r\n]$/s;

/**
 * The form of secrets that the sender generates. They contain no white space, which was added when pasting, and nothing
 * that separates two secrets in one variable.
 */
export const generated: RegExp = /^[^\s,;|]+$/;

/**
 * The option `url` as a function.
 *
 * @throws {TypeError} it is neither a function nor the text of an HTTP(S) URL. From the function: it returns no text
 */
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

/** The URL where the option `url` is not given. */
export const urlOf = (request: Request): string => request.url;
