/**
 * Compiles a pattern of KEYS and SCAN into a function that matches byte strings: `*`, `?`, `[abc]`, `[^a-z]`, and `\`
 * to escape a character.
 *
 * @example
 * globMatcher("user:*")("user:1"); // true
 */
export function globMatcher(pattern: string): (text: string) => boolean {
  let source = "";
  for (let position = 0; position < pattern.length; position++) {
    const character = pattern[position]!;
    if (character === "*") {
      if (!source.endsWith("[\\s\\S]*")) source += "[\\s\\S]*";
    } else if (character === "?") {
      source += "[\\s\\S]";
    } else if (character === "[") {
      const [set, end] = readSet(pattern, position + 1);
      source += set;
      position = end;
    } else {
      if (character === "\\" && position + 1 < pattern.length) position++;
      source += literal(pattern[position]!);
    }
  }
  const expression = new RegExp(`^${source}$`);
  return (text) => expression.test(text);
}

/** Parses a set up to its `]`; as in Redis, up to the end if there is none. */
function readSet(pattern: string, start: number): [source: string, end: number] {
  let position = start;
  const negated = pattern[position] === "^";
  if (negated) position++;
  let members = "";
  for (; position < pattern.length && pattern[position] !== "]"; position++) {
    if (pattern[position] === "\\" && position + 1 < pattern.length) position++;
    let low = pattern[position]!;
    let high = low;
    if (pattern[position + 1] === "-" && position + 2 < pattern.length) {
      high = pattern[position + 2]!;
      position += 2;
    }
    if (low > high) [low, high] = [high, low];
    members += `${literal(low)}-${literal(high)}`;
  }
  return [`[${negated ? "^" : ""}${members}]`, position];
}

function literal(character: string): string {
  return `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
}
