import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { pack } from "../support/packed.ts";

test("the tarball is at most 1.2 MB, and attw finds no wrong type in it", async () => {
  const { tarball } = await pack();
  expect(statSync(tarball).size).toBeLessThanOrEqual(1_200_000);
  const attw = join(process.cwd(), "node_modules/@arethetypeswrong/cli/dist/index.js");
  // The package is ESM only: CommonJS loads it by import(). Ends with 1, and throws here, if anything else is wrong.
  execFileSync(process.execPath, [attw, "--profile", "esm-only", "--no-definitely-typed", tarball]);
});
