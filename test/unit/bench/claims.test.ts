import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rows } from "../../../evidence/claims/rows.mjs";

test("docs/choosing.md has the rows that `node evidence/claims.mjs` shows, and no others", () => {
  const page = readFileSync("docs/choosing.md", "utf8");
  const [, section] = page.split("## Compared with other packages\n");
  const lines = section!.split("\n## ")[0]!.match(/^\| .*/gm)!;
  let name = "";
  const claims = lines.slice(2).map((line) => {
    const [first, peer, ours] = line.split("|").slice(1, -1);
    // A row without a package belongs to that of the row above.
    name = first!.trim() || name;
    return { package: name, peer: peer!.trim(), ours: ours!.trim() };
  });
  expect(claims.length).toBeGreaterThan(15);
  expect(claims).toEqual(rows.map(({ observe, ...claim }) => claim));
});
