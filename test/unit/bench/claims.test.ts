import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { rows } from "../../../evidence/claims/rows.mjs";
import { claimsOf, differences } from "../../../evidence/claims/table.mjs";

test("docs/choosing.md has the rows that `node evidence/claims.mjs` shows, and no others", () => {
  expect(rows.length).toBeGreaterThan(15);
  expect(differences(claimsOf(readFileSync("docs/choosing.md", "utf8")), rows)).toEqual([]);
});
