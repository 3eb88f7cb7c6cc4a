import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { sizes } from "../../bench/size.mjs";

test("the README's size of the client is that of docs/costs.md", () => {
  const [readme, page] = ["README.md", "docs/costs.md"].map((name) => readFileSync(name, "utf8"));
  const size = /`Redlock` is ([\d.]+ kB)/.exec(readme!)?.[1];
  expect(page).toContain(`| \`Redlock\` | ${size} |`);
});

test("the sizes of docs/costs.md are what `npm run bench -- size` prints, within 2 %", async () => {
  const page = readFileSync(new URL("../../docs/costs.md", import.meta.url), "utf8");
  const measured: { label: string; bytes: number }[] = await sizes();
  expect(measured.length).toBeGreaterThan(10);
  for (const { label, bytes } of measured) {
    const row = page.split("\n").find((line) => line.startsWith(`| ${label} |`));
    expect(row, `the page has no row for ${label}`).toBeDefined();
    const claimed = Number(/\| ([\d.]+) kB \|/.exec(row ?? "")?.[1]) * 1_000;
    expect(Math.abs(claimed - bytes) / bytes, `${label}: ${claimed}, measured ${bytes}`).toBeLessThan(0.02);
  }
});
