import { execFileSync } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { onDemand } from "../support/on-demand.ts";
import { pack } from "../support/packed.ts";

test.each([
  ["redlockEdge", 375_000],
  ["redlockEdgeServer", 60_000],
  ["redisRestLocal", 900_000],
] as const)(
  "the tarball of %s is at most %d bytes, and attw finds no wrong type in it",
  async (name, most) => {
    const { tarball } = (await pack())[name];
    expect(statSync(tarball).size).toBeLessThanOrEqual(most);
    const attw = join(onDemand(), "@arethetypeswrong/cli/dist/index.js");
    // The package is ESM only: CommonJS loads it by import(). Ends with 1, and throws here, if anything else is wrong.
    execFileSync(process.execPath, [attw, "--profile", "esm-only", "--no-definitely-typed", tarball]);
  },
);
