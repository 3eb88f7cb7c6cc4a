import type { Reporter, TestModule } from "vitest/node";
import { missingPrograms } from "./programs.ts";

/** Says at the end of a run what to install for the tests that were skipped. */
export class MissingPrograms implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const skipped = modules.flatMap((module) => [...module.children.allTests("skipped")]).length;
    if (skipped === 0 || missingPrograms.length === 0) return;
    const list = (key: "name" | "apt" | "brew", between: string) =>
      missingPrograms.map((program) => program[key]).join(between);
    console.warn(
      `${skipped} tests were skipped: ${list("name", ", ")} not found. ` +
        `Install: apt-get install ${list("apt", " ")}, or brew install ${list("brew", " ")}`,
    );
  }
}
