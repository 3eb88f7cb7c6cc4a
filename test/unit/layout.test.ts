import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { arrows, imports, layers } from "../../scripts/arrows.mjs";

// The layout of docs/internals/architecture.md, as far as a program can check it.

const project = fileURLToPath(new URL("../..", import.meta.url));
const source = join(project, "src");
const files = readdirSync(source, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);

test("at most eight files are at the root of src/", () => {
  expect(files.filter((name) => !/[\\/]/.test(name)).length).toBeLessThanOrEqual(8);
});

// 60, three of otel, one for hashes of holders (lock → bytes.ts), and five for the command line (dev → index.ts,
// idempotency, sync, webhooks, check.ts): it uses the package's public entries, as its users do, and checks names as the
// library does; two of inbox, to shared files; and the page of the local endpoints shows the picture.
test("parts of src/ import each other by at most 72 arrows, and in no circle", () => {
  const byPart = arrows(imports());
  expect(byPart.size).toBeGreaterThan(10);
  const count = [...byPart.values()].reduce((sum, { size }) => sum + size, 0);
  expect(count).toBeLessThanOrEqual(72);
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

test("words that the field does not use for this stay out", () => {
  const old =
    /\b(contest|custody|outlook|verdict|withdraw(s|n|als?)?|glance|patience|handOver|lapse[sd]?|verbatim|whoever|in vain)\b/i;
  const folders = ["src", "worker", "playground", "examples", "scripts", "bench", "docs", "test", ".github"];
  const texts = folders.flatMap((folder) =>
    readdirSync(join(project, folder), { recursive: true, encoding: "utf8" }).map((name) =>
      join(folder, name),
    ),
  );
  const found = [...texts, "README.md", "CONTRIBUTING.md", "SECURITY.md"]
    .filter((name) => /\.(ts|mjs|md|yml)$/.test(name) && !name.endsWith("layout.test.ts"))
    .flatMap((name) => {
      const lines = readFileSync(join(project, name), "utf8").split("\n");
      return lines.filter((line) => old.test(line)).map((line) => `${name}: ${line.trim()}`);
    });
  expect(texts.length).toBeGreaterThan(200);
  expect(found).toEqual([]);
});
