import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { arrows, imports, layers } from "../../scripts/arrows.mjs";

// The layout of docs/architecture.md, as far as a program can check it.

const source = fileURLToPath(new URL("../../src", import.meta.url));
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);

test("at most eight files are at the root of src/", () => {
  expect(files.filter((name) => !/[\\/]/.test(name)).length).toBeLessThanOrEqual(8);
});

test("parts of src/ import each other by at most 60 arrows, and in no circle", () => {
  const byPart = arrows(imports());
  expect(byPart.size).toBeGreaterThan(10);
  const count = [...byPart.values()].reduce((sum, { size }) => sum + size, 0);
  expect(count).toBeLessThanOrEqual(60);
  expect(layers(byPart)).toBeDefined();
});

test("layers() detects a circle", () => {
  const circle = new Map([
    ["lock", new Set(["quorum"])],
    ["quorum", new Set(["lock"])],
  ]);
  expect(layers(circle)).toBeUndefined();
});

test("no file of src/ is longer than 400 lines", () => {
  const long = files.filter((name) => readFileSync(join(source, name), "utf8").split("\n").length > 401);
  expect(long).toEqual([]);
});
