import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { onTestFinished } from "vitest";

/** Copies of a module of `src` with all that it imports, each with a module scope of its own. */
export interface Copies<Module> {
  /** One more copy, as a dev server loads a module that was changed: with another query. */
  reload(): Promise<Module>;
  /** The copy of CommonJS. */
  required(): Module;
}

/** Bundles a module of `src`, such as `"sockets"`, as ESM and as CommonJS, until the test ends. */
export async function copiesOf<Module>(entry: string): Promise<Copies<Module>> {
  const folder = mkdtempSync(join(tmpdir(), "redlock-edge-copies-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [esm, cjs] = ["copy.mjs", "copy.cjs"].map((name) => join(folder, name)) as [string, string];
  const common = { entryPoints: [join("src", entry)], bundle: true, platform: "node" as const };
  await Promise.all([
    build({ ...common, format: "esm", outfile: esm }),
    build({ ...common, format: "cjs", outfile: cjs }),
  ]);
  let loaded = 0;
  return {
    reload() {
      loaded += 1;
      return import(`${pathToFileURL(esm)}?t=${loaded}`) as Promise<Module>;
    },
    required: () => createRequire(cjs)(cjs) as Module,
  };
}
