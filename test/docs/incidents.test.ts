import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

// Every row of docs/incidents.md has a source, and tests that exist.

const rows = readFileSync("docs/incidents.md", "utf8")
  .split("\n")
  .filter((line) => line.startsWith("| ["))
  .map((line) => line.slice(2, -2).split(" | "));

const linksIn = (cell: string) =>
  Array.from(cell.matchAll(/\[([^\]]+)\]\(([^)\s]+)\)/g), ([, text, target]) => [text!, target!] as const);

describe("docs/incidents.md", () => {
  it("has 40 to 60 rows: sources, what happened, what happens here, tests", () => {
    expect(rows.length).toBeGreaterThanOrEqual(40);
    expect(rows.length).toBeLessThanOrEqual(60);
    expect(rows.filter((cells) => cells.length !== 4)).toEqual([]);
  });

  it.each(rows.map(([sources, , , tests]) => [sources!, tests!]))("%s: its tests exist", (sources, tests) => {
    expect(linksIn(sources)).not.toEqual([]);
    for (const [, target] of linksIn(sources)) expect(target).toMatch(/^https:\/\/github\.com\/.+\/\d+$/);
    expect(linksIn(tests)).not.toEqual([]);
    for (const [name, target] of linksIn(tests)) {
      const file = join("docs", target);
      expect(existsSync(file), file).toBe(true);
      expect(
        titlesIn(file).filter((title) => title.includes(name)),
        `${file}: ${name}`,
      ).not.toEqual([]);
    }
  });
});

/** The texts of a file of tests: their names, and those of their cases. */
function titlesIn(file: string): string[] {
  return Array.from(readFileSync(file, "utf8").matchAll(/"((?:[^"\\\n]|\\.)*)"/g), ([, text]) => text!);
}
