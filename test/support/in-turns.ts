import { describe } from "vitest";

/**
 * `describe.each` whose suites run concurrently, because they mostly wait. The tests of one suite share its endpoints
 * and run one after another.
 */
export function eachInTurns<Case extends object>(cases: readonly Case[]) {
  return (title: string, suite: (each: Case) => void): void => {
    describe.concurrent.each(cases)(title, (each) => {
      describe.sequential("in turn", () => suite(each));
    });
  };
}
