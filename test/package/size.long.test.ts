import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { sizes } from "../../bench/size.mjs";

test.each([
  ["a lock", /a lock takes (\d+) kB/],
  ["a webhook guard", /a webhook guard (\d+) kB/],
])("%s takes no more than the README says", (what, pattern) => {
  const kB = (page: string, of: RegExp) => Number(of.exec(readFileSync(page, "utf8"))?.[1]);
  // README.md rounds it.
  const most = kB("README.md", pattern) + 0.5;
  expect(kB("bench/README.md", new RegExp(`^\\| ${what}: .* \\| ([\\d.]+) kB`, "m"))).toBeLessThan(most);
});

test("no import is larger than bench/README.md says, from `npm run bench -- size`", async () => {
  const page = readFileSync(new URL("../../bench/README.md", import.meta.url), "utf8");
  const measured: { label: string; bytes: number }[] = await sizes();
  expect(measured.length).toBeGreaterThan(10);
  for (const { label, bytes } of measured) {
    const row = page.split("\n").find((line) => line.startsWith(`| ${label} |`));
    expect(row, `the page has no row for ${label}`).toBeDefined();
    const claimed = Number(/\| ([\d.]+) kB \|/.exec(row ?? "")?.[1]) * 1_000;
    expect(bytes, label).toBeLessThan(1.02 * claimed);
  }
});
