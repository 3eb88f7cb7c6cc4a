import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import ts from "typescript";
import { expect, it } from "vitest";

// What an editor shows where the pointer rests on `new Redlock(`.

it("every exported class says what its constructor makes", async () => {
  const { exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
    exports: Record<string, { default?: string }>;
  };
  const entries = Object.values(exports)
    .flatMap(({ default: file }) => file?.replace(/^\.\/dist\/(.*)\.js$/, "src/$1.ts") ?? [])
    .concat("lock-server/src/index.ts", "local/src/index.ts", "local/src/memory/index.ts");
  const classes = (await Promise.all(entries.map(classesOf))).flat();
  expect(classes).toContain("src/index.ts: Redlock");
  expect(classes).toContain("src/idempotency/index.ts: Idempotency");
  const hovers = hoversOf(classes);
  expect(classes.filter((_, index) => !/\w/.test(hovers[index]!))).toEqual([]);
});

async function classesOf(entry: string): Promise<string[]> {
  const values = Object.entries((await import(resolve(entry))) as Record<string, unknown>);
  const isClass = (value: unknown) => typeof value === "function" && /^class\b/.test(String(value));
  return values.flatMap(([name, value]) => (isClass(value) ? [`${entry}: ${name}`] : []));
}

/** The texts that TypeScript's language service has for `new` with each class. */
function hoversOf(classes: readonly string[]): string[] {
  const program = resolve("hover.ts");
  const lines = classes.map((each, index) => {
    const [entry, name] = each.split(": ");
    return `import { ${name} as C${index} } from "./${entry}";\nnew C${index}();`;
  });
  const text = lines.join("\n");
  const config = ts.readConfigFile("docs/site/tsconfig.json", ts.sys.readFile).config;
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, "docs/site");
  const service = ts.createLanguageService({
    getCompilationSettings: () => options,
    getScriptFileNames: () => [program],
    getScriptVersion: () => "1",
    getScriptSnapshot: (file) => {
      const source = file === program ? text : ts.sys.readFile(file);
      return source === undefined ? undefined : ts.ScriptSnapshot.fromString(source);
    },
    getCurrentDirectory: () => process.cwd(),
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (file) => file === program || ts.sys.fileExists(file),
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
    getDirectories: ts.sys.getDirectories,
  });
  const hovers = classes.map((_, index) => {
    const info = service.getQuickInfoAtPosition(program, text.indexOf(`new C${index}(`) + 4);
    expect(ts.displayPartsToString(info?.displayParts)).toMatch(/^(\(alias\) )?(constructor|new|class)/);
    return ts.displayPartsToString(info?.documentation);
  });
  service.dispose();
  return hovers;
}
