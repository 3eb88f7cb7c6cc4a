import process from "node:process";
import type { Reporter, TestModule } from "vitest/node";
import { missingPrograms } from "./programs.ts";

/** Says at the end of a run what to install for the tests that were skipped. */
export class MissingPrograms implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests("skipped")]).length;
    if (skipped === 0 || missingPrograms.length === 0) return;
    const list = (key: "name" | "apt" | "brew", between: string) =>
      missingPrograms.map((program) => program[key]).join(between);
    // A workflow shows this line at the top of its run.
    const mark = process.env.GITHUB_ACTIONS === "true" ? "::warning::" : "";
    console.warn(
      `${mark}${skipped} tests were skipped: ${list("name", ", ")} not found. ` +
        `Install: apt-get install ${list("apt", " ")}, or brew install ${list("brew", " ")}`,
    );
  }
}
