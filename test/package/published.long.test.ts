import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

test("the tarball is at most 1 MB, and attw finds no wrong type in it", () => {
  const folder = mkdtempSync(join(tmpdir(), "redlock-edge-published-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [{ filename }] = JSON.parse(packed.slice(packed.indexOf("[\n")));
  const tarball = join(folder, filename);
  expect(statSync(tarball).size).toBeLessThanOrEqual(1_000_000);
  const attw = join(process.cwd(), "node_modules/@arethetypeswrong/cli/dist/index.js");
  // The package is ESM only: CommonJS loads it by import(). Ends with 1, and throws here, if anything else is wrong.
  execFileSync(process.execPath, [attw, "--profile", "esm-only", "--no-definitely-typed", tarball]);
});
