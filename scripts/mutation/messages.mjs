// Plugin of StrykerJS: leaves out the texts of errors, and of the command's output. Their words are not behaviour; what
// tests have to check of an error is its class, its code, and that it contains no secret.

import process from "node:process";
import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";

// Of the command's lines for people, only what has one word is behaviour.
const isDev = process.env.MUTATION === "dev";
const why = "the text of an error";

/** Whether it is a sentence, or a part of one. */
function isProse({ node }) {
  const texts = node.type === "StringLiteral" ? [node.value] : node.quasis.map(({ value }) => value.raw);
  return texts.some((text) => /\s/.test(text));
}

/** Whether a node is an argument of `new SomeError(…)` or of `validity.lose(…)`, which makes one; or part of one. */
function isInError(path) {
  for (let at = path; at.parentPath; at = at.parentPath) {
    const { parentPath: parent } = at;
    if (parent.isNewExpression() || parent.isCallExpression()) {
      const { callee } = parent.node;
      const { name = "" } = callee.type === "MemberExpression" ? callee.property : callee;
      return (
        at.listKey === "arguments" && (parent.isNewExpression() ? name.endsWith("Error") : name === "lose")
      );
    }
    if (!parent.isTemplateLiteral() && !parent.isBinaryExpression() && !parent.isConditionalExpression())
      return false;
  }
  return false;
}

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, "messages", {
    shouldIgnore(path) {
      const isText = path.isStringLiteral() || path.isTemplateLiteral();
      return isText && (isInError(path) || (isDev && isProse(path))) ? why : undefined;
    },
  }),
];
