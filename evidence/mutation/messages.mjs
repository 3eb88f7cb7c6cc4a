// Plugin of StrykerJS: leaves out the texts of errors, and of the command's output. Their words are not behaviour; what
// tests have to check of an error is its class, its code, and that it contains no secret. It also leaves out what
// changes nothing wherever it stands: a `catch` at the end of a function that returns undefined, as the end does.

import process from "node:process";
import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";

// Of the command's lines for people, only what has one word is behaviour.
const isDev = process.env.MUTATION === "dev";

/** Functions of which every argument is part of an error's text. */
const makers = ["lose", "malformed", "badSignature"];

/** Whether it is a sentence, or a part of one. */
function isProse({ node }) {
  const texts = node.type === "StringLiteral" ? [node.value] : node.quasis.map(({ value }) => value.raw);
  return texts.some((text) => /\s/.test(text));
}

/** Whether a node is, or is part of, an argument of `new SomeError(…)`, of its `super(…)`, or of one of the makers. */
function isInError(path) {
  for (let at = path; at.parentPath; at = at.parentPath) {
    const { parentPath: parent } = at;
    if (parent.isNewExpression() || parent.isCallExpression()) {
      const { callee } = parent.node;
      const { name = "" } = callee.type === "MemberExpression" ? callee.property : callee;
      if (at.listKey !== "arguments") return false;
      if (callee.type === "Super") return isProse(path);
      return parent.isNewExpression() ? name.endsWith("Error") : makers.includes(name);
    }
    if (!parent.isTemplateLiteral() && !parent.isBinaryExpression() && !parent.isConditionalExpression())
      return false;
  }
  return false;
}

/** Whether it is the names in a `QuorumError`, which are in its text only. */
function isNames({ parentPath: parent, listKey, key }) {
  return listKey === "arguments" && key === 1 && parent.node.callee.name === "QuorumError";
}

/** Whether it is the block of a `catch` that returns undefined at the end of its function. */
function isLastCatch({ node, parentPath: parent }) {
  const [only, more] = node.body;
  const returnsNone =
    !more &&
    only?.type === "ReturnStatement" &&
    only.argument?.type === "Identifier" &&
    only.argument.name === "undefined";
  if (!parent.isCatchClause() || !returnsNone) return false;
  const { parentPath: statement } = parent;
  const { parentPath: block } = statement;
  return block.parentPath.isFunction() && statement.key === block.node.body.length - 1;
}

/** Why a node is left out. */
function reasonFor(path) {
  if (path.isStringLiteral() || path.isTemplateLiteral()) {
    return isInError(path) || (isDev && isProse(path)) ? "the text of an error" : undefined;
  }
  if (path.isArrayExpression() && isNames(path)) return "the text of an error";
  if (path.isBlockStatement() && isLastCatch(path)) return "the function returns undefined either way";
  return undefined;
}

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, "messages", { shouldIgnore: reasonFor }),
];
