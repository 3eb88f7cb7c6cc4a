/**
 * Two texts become equal only if every reader finds them equal. A number that JavaScript would round (9007199254740993,
 * 1e400, -0) becomes a text that no string of the JSON becomes.
 *
 * @throws SyntaxError the text is no JSON, or an object has a member twice: JavaScript takes the last, others the first
 */
export function parseExactJson(text: string): unknown {
  JSON.parse(text); // Its tokens can now be found without a grammar.
  let names = 0;
  const exact = text.replace(tokens, (token: string, string?: string, colon?: string) => {
    if (colon !== undefined) names += 1;
    if (string === undefined) return isExact(token) ? token : `"${mark}${token}"`;
    return string.startsWith(`"${mark}`) ? `"${mark}${token.slice(1)}` : token;
  });
  let members = -1; // The whole counts as a member.
  const value: unknown = JSON.parse(exact, function (this: unknown, _name, inner: unknown) {
    if (!Array.isArray(this)) members += 1;
    return inner;
  });
  if (names !== members) throw new SyntaxError("an object has a member twice");
  return value;
}

/** Strings, with the colon of a name, and numbers that JavaScript may round: with 15 digits it never does. */
const tokens =
  /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|-?\d[\d.]{15,}(?:e[+-]?\d+)?|-?\d[\d.]*e[+-]?\d+|-0[\d.]*/gi;

/** Marks a number's text. A string that begins with it gets it once more. */
const mark = "\\u0000";

function isExact(token: string): boolean {
  return token.length < 400 && decimal(token) === decimal(String(Number(token)));
}

/** One text for 100, 1e2 and 100.0. */
function decimal(number: string): string {
  const [, sign, whole, fraction = "", power = "0"] = /^(-?)(\d+)\.?(\d*)(?:e(.+))?$/i.exec(number) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  const exponent = significant && Number(power) - fraction.length + digits.length - significant.length;
  return `${sign}${significant}e${exponent}`;
}
