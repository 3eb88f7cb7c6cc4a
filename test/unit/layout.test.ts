import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { faultsOf, houses, importsOf } from "../../tools/imports.mjs";
import { project } from "../../tools/load.mjs";

// The layout of docs/internals/architecture.md, as far as a program can check it.

describe.each(Object.keys(houses))("%s", (house) => {
  test("imports only what it may, and nothing in a circle", () => {
    expect(importsOf(house).length).toBeGreaterThan(10);
    expect(faultsOf(house)).toEqual([]);
  });

  test("has no file of more than 400 lines", () => {
    const files = readdirSync(join(project, house), { recursive: true, encoding: "utf8" });
    const lines = (name: string) => readFileSync(join(project, house, name), "utf8").split("\n").length;
    expect(files.filter((name) => name.endsWith(".ts") && lines(name) > 401)).toEqual([]);
  });
});
