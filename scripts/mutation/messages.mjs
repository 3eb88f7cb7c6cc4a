// Plugin of StrykerJS: leaves out the texts of errors. Their words are no behaviour; what tests have to check of an error
// is its class, its code, and that it contains no secret.

import { declareValuePlugin, PluginKind } from "@stryker-mutator/api/plugin";

const why = "the text of an error";

/** Whether a node is an argument of `new SomeError(…)`, or part of one. */
function isInError(path) {
  for (let at = path; at.parentPath; at = at.parentPath) {
    const { parentPath: parent } = at;
    if (parent.isNewExpression()) {
      const { callee } = parent.node;
      return callee.type === "Identifier" && callee.name.endsWith("Error") && at.listKey === "arguments";
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
