// The mutants of a Lua script: one small change each.

const comparisons = { "==": "~=", "~=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">" };
const operators = { ...comparisons, and: "or", or: "and", "+": "-", "-": "+", "*": "/", "/": "*" };
const token = /"[^"]*"|--[^\n]*|\d+(?:\.\d+)?(?:e\d+)?|[A-Za-z_]\w*|==|~=|<=|>=|\.{2,3}|\S/g;
/** What a condition begins with, and what ends it. */
const conditions = { if: "then", elseif: "then", while: "do", until: "\n" };
/** After these a new statement begins; so it does at the begin of a line. */
const beforeStatement = new Set(["then", "else", "do", "end", ";"]);

/** The words and signs of a script, without comments: text, place, line. */
function tokensOf(source) {
  return [...source.matchAll(token)]
    .filter(([text]) => !text.startsWith("--"))
    .map(({ 0: text, index }) => ({ text, at: index, line: source.slice(0, index).split("\n").length }));
}

/** The place behind the parenthesis that closes the one at `from`. */
function behindCall(tokens, from) {
  let depth = 0;
  for (let index = from; index < tokens.length; index += 1) {
    if (tokens[index].text === "(") depth += 1;
    if (tokens[index].text === ")") depth -= 1;
    if (depth === 0) return tokens[index].at + 1;
  }
  throw new Error("a parenthesis is not closed");
}

/**
 * The mutants of a script: another operator, a number more or less by one, a condition negated, a `not` dropped, a
 * statement that calls something deleted.
 *
 * @param {string} source
 * @returns {{ line: number, from: string, to: string, source: string }[]}
 */
export function mutantsOf(source) {
  const tokens = tokensOf(source);
  const mutants = [];
  const replace = ({ line }, at, end, to) => {
    const from = source.slice(at, end);
    mutants.push({ line, from, to, source: source.slice(0, at) + to + source.slice(end) });
  };
  for (const [index, each] of tokens.entries()) {
    const { text, at, line } = each;
    const previous = tokens[index - 1];
    const end = at + text.length;
    // A minus without a left side is a sign.
    const isBinary = previous && (/^[\w")\]]/.test(previous.text) || text.length > 1);
    if (Object.hasOwn(operators, text) && isBinary) replace(each, at, end, operators[text]);
    if (text === "not") replace(each, at, end, "");
    // Another index of KEYS, ARGV or a reply: every test would notice.
    if (/^\d/.test(text) && previous?.text !== "[")
      for (const to of [Number(text) + 1, Number(text) - 1]) replace(each, at, end, `${to}`);
    if (Object.hasOwn(conditions, text)) {
      const close = tokens.slice(index).find((other) => other.text === conditions[text]);
      const condition = source.slice(end, close.at).trim();
      // Where that is what another operator, or no `not`, does as well.
      const isOne = !/ (and|or) /.test(condition) && /^not |[=~]=/.test(condition);
      if (!isOne) replace(each, end, close.at, ` not (${condition}) `);
    }
    const isFirst = !previous || previous.line < line || beforeStatement.has(previous.text);
    const open = tokens.findIndex((other, place) => place >= index && other.text === "(");
    const isCall =
      source.slice(at).match(/^(redis\.p?call|[a-z]\w*)\(/) && !["if", "function"].includes(text);
    if (isFirst && isCall) replace(each, at, behindCall(tokens, open), "do end");
  }
  return mutants;
}
