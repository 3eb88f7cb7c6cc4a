// Plugin of StrykerJS: leaves out the texts of errors. Their words are no behaviour; what tests have to check of an error
// is its class, its code, and that it contains no secret.

import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";

const why = "the text of an error";

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
      return isText && isInError(path) ? why : undefined;
    },
  }),
];
