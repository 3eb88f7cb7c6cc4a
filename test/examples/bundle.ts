import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { EdgeVM } from "@edge-runtime/vm";
import { type BuildOptions, build } from "esbuild";
import { onTestFinished, vi } from "vitest";

/** Builds an example as users would, but with `redlock-edge` from src and with a longer timeout. */
const asUsersDo: BuildOptions = {
  tsconfig: "tsconfig.examples.json",
  bundle: true,
  plugins: [
    {
      name: "long-timeout",
      setup(on) {
        const path = resolve("test/examples/long-timeout.ts");
        on.onResolve({ filter: /^redlock-edge$/ }, () => ({ path }));
      },
    },
  ],
};

/** Bundles an example for Node, and returns the path of the bundle. */
export async function bundleForNode(example: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "redlock-edge-example-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const outfile = join(folder, basename(example).replace(/\.\w+$/, ".mjs"));
  await build({
    ...asUsersDo,
    entryPoints: [join("examples", example)],
    platform: "node",
    format: "esm",
    // Bundled CommonJS modules call it, and ES modules do not have it.
    banner: {
      js: 'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);',
    },
    outfile,
  });
  return outfile;
}

/** Bundles an example for Node, and imports it with these environment variables, until the next test begins. */
export async function importInNode<Exports>(
  example: string,
  env: Readonly<Record<string, string>>,
): Promise<Exports> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return (await import(/* @vite-ignore */ await bundleForNode(example))) as Exports;
}

/** Bundles an example for Cloudflare Workers, as Wrangler does, and returns the script. */
export async function bundleForWorkerd(example: string): Promise<string> {
  const { outputFiles = [] } = await build({
    ...asUsersDo,
    entryPoints: [join("examples", example)],
    platform: "browser",
    format: "esm",
    target: "es2022",
    write: false,
  });
  return outputFiles[0]!.text;
}

/** An example in Vercel's Edge runtime. */
export interface OnTheEdge {
  readonly vm: EdgeVM;
  /** Its exported handler. */
  POST(request: Request): Promise<Response>;
  /** The promises that it passed to the platform's waitUntil. */
  readonly work: Promise<unknown>[];
}

/** Bundles an example for the Edge runtime and loads it there; `platform` is the module that has waitUntil. */
export async function loadOnTheEdge(
  example: string,
  platform: string,
  env: Readonly<Record<string, string>>,
): Promise<OnTheEdge> {
  const { outputFiles = [] } = await build({
    ...asUsersDo,
    entryPoints: [join("examples", example)],
    alias: { [platform]: "./test/examples/wait-until.ts" },
    platform: "browser",
    format: "iife",
    globalName: "example",
    write: false,
  });
  const work: Promise<unknown>[] = [];
  const vm = new EdgeVM({
    extend: (context) => Object.assign(context, { process: { env: { ...env } }, platformWork: work }),
  });
  const POST = vm.evaluate<OnTheEdge["POST"]>(`${outputFiles[0]!.text};example.POST`);
  return { vm, POST, work };
}
