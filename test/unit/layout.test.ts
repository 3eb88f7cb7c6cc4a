import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";

// The layout of docs/internals/architecture.md, as far as a program can check it. The linter finds files that import each other
// in a circle.

/** By folder: the other folders or files that its files may import. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  src: [],
  "lock-server/src": [],
  "local/src": ["lock-server/src", "src/check", "src/cli/text.ts", "src/inspect/stored-key.ts"],
  pictures: ["src", "local/src", "evidence/sim/world/digest.ts"],
  worker: ["src"],
  "evidence/sim": ["src", "local/src"],
};

const relativeImport =
  /^(?:import|export)\b[^"';]*?\bfrom\s+"(\.[^"]+)"|^import\s+"(\.[^"]+)"|\bimport\("(\.[^"]+)"\)/gm;

/** The files that a file imports, types included, as paths in the project. */
function importsOf(file: string): string[] {
  const found = [...readFileSync(file, "utf8").matchAll(relativeImport)];
  return found.map(([, ...paths]) => join(dirname(file), paths.find((path) => path !== undefined)!));
}

describe.each(Object.entries(allowed))("%s", (folder, others) => {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => name.endsWith(".ts")).map((name) => join(folder, name));

  test("imports only what it may", () => {
    const mayImport = (path: string) =>
      [folder, ...others].some((place) => path === place || path.startsWith(`${place}/`));
    const imports = files.flatMap((file) => importsOf(file).map((path) => ({ file, path })));
    expect(imports.length).toBeGreaterThan(10);
    expect(imports.filter(({ path }) => !mayImport(path))).toEqual([]);
  });

  test("has no file of more than 400 lines", () => {
    expect(files.filter((file) => readFileSync(file, "utf8").split("\n").length > 401)).toEqual([]);
  });
});
