import process from "node:process";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { missingPrograms } from "./programs.ts";

/**
 * Says at the end of a run what to install for the tests that were left out. In CI a skipped test is a failure: a run
 * without it would look as if it had passed. Only what OPTIONAL_PROGRAMS names may be missing there.
 */
export class MissingPrograms implements Reporter {
  #isPart = false;

  onInit({ config }: Vitest): void {
    this.#isPart = config.testNamePattern !== undefined;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests("skipped")]);
    const skipped = tests.length;
    if (this.#isPart) return;
    if (skipped > 0 && process.env.CI === "true" && !process.env.OPTIONAL_PROGRAMS) {
      const name = (test: TestCase) => `  ${test.module.relativeModuleId}: ${test.fullName}`;
      console.error(`Skipped in CI, which is a failure:\n${tests.map(name).join("\n")}`);
      process.exitCode = 1;
    }
    if (missingPrograms.length === 0) return;
    const list = (key: "name" | "apt" | "brew", between: string) =>
      missingPrograms.map((program) => program[key]).join(between);
    // A workflow shows this line at the top of its run.
    const mark = process.env.GITHUB_ACTIONS === "true" ? "::warning::" : "";
    console.warn(
      `${mark}${list("name", ", ")} not found: what needs them was left out (${skipped} tests were skipped). ` +
        `Install: apt-get install ${list("apt", " ")}, or brew install ${list("brew", " ")}`,
    );
  }
}
