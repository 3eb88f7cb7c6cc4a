import { describe } from "vitest";
import { eachEngine } from "./each-engine.ts";

/**
 * {@link eachEngine} whose suites run concurrently, because they mostly wait. The tests of one suite share its endpoints
 * and run one after another.
 */
export function eachInTurns<Case extends object>(cases: readonly Case[]) {
  return (title: string, suite: (each: Case) => void): void => {
    const inTurn = (each: Case) => {
      describe.sequential("in turn", () => suite(each));
    };
    eachEngine(cases as readonly { readonly engine?: string }[], describe.concurrent)(title, inTurn as never);
  };
}
