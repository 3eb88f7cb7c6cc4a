import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fencesOf } from "../docs/fences.ts";
import { onDemand } from "../support/on-demand.ts";
import { installPacked, type Project } from "../support/packed.ts";
import { jest } from "./jest.ts";

// What other programs make of the packed packages: their names are in test/on-demand/package.json.

let project: Project;
beforeAll(async () => {
  project = await installPacked();
}, 120_000);
afterAll(() => project.remove());

describe("the packed packages", () => {
  it("passes publint", () => {
    const publint = join(onDemand(), "publint/src/cli.js");
    for (const cwd of [".", "lock-server", "local"]) {
      const report = execFileSync(process.execPath, [publint, "--strict"], { cwd, encoding: "utf8" });
      expect(report).toContain("All good!");
    }
  });

  it.each(["redlockEdge", "redlockEdgeServer", "redisRestLocal"] as const)(
    "are tarballs in which attw finds no wrong type: %s",
    (name) => {
      const { tarball } = project.packed[name];
      const attw = join(onDemand(), "@arethetypeswrong/cli/dist/index.js");
      // CommonJS requires an ES module. Ends with 1, and throws here, if anything else is wrong.
      const allowed = ["--ignore-rules", "cjs-resolves-to-esm", "--no-definitely-typed"];
      execFileSync(process.execPath, [attw, tarball, ...allowed]);
    },
  );
});

describe("in Jest", () => {
  /** What docs/platforms.md says to set. */
  const settings = (): object => {
    const blocks = fencesOf("docs/platforms.md").filter(({ text }) => /transformIgnorePatterns/.test(text));
    expect(blocks).toHaveLength(1);
    return JSON.parse(blocks[0]!.text).jest;
  };

  it.each(["@swc/jest", "babel-jest", "ts-jest"] as const)(
    "the packages work with %s",
    async (transformer) => {
      expect(await jest(project.folder, transformer, settings())).toMatch(/^Tests: +3 passed, 3 total$/m);
    },
  );

  it("the packages need these settings, and the message has a row in docs/errors.md", async () => {
    const message = "Must use import to load ES Module";
    expect(await jest(project.folder, "@swc/jest", {})).toContain(message);
    expect(readFileSync("docs/errors.md", "utf8")).toContain(`\`${message}\``);
  });
});
