import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { EdgeVM } from "@edge-runtime/vm";
import { type BuildOptions, build } from "esbuild";
import { Miniflare, type MiniflareOptions } from "miniflare";
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

const bundles = new Map<string, Promise<string>>();

/** Bundles an example, once for all tests of this process. */
function bundle(example: string, options: BuildOptions): Promise<string> {
  const entry = join("examples", example);
  const name = JSON.stringify([entry, options]);
  const made =
    bundles.get(name) ??
    build({ ...asUsersDo, ...options, entryPoints: [entry], write: false }).then(
      ({ outputFiles }) => outputFiles![0]!.text,
    );
  bundles.set(name, made);
  return made;
}

/** Bundles an example for Node, and returns the path of a file of its own: what imports it has its own module scope. */
export async function bundleForNode(example: string, options: BuildOptions = {}): Promise<string> {
  const text = await bundle(example, {
    ...options,
    platform: "node",
    format: "esm",
    // Bundled CommonJS modules call it, and ES modules do not have it.
    banner: {
      js: 'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);',
    },
  });
  const folder = mkdtempSync(join(tmpdir(), "redlock-edge-example-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "example.mjs");
  writeFileSync(file, text);
  return file;
}

/** Bundles an example for Node, and imports it with these environment variables, until the next test begins. */
export async function importInNode<Exports>(
  example: string,
  env: Readonly<Record<string, string>>,
  options: BuildOptions = {},
): Promise<Exports> {
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  return (await import(/* @vite-ignore */ await bundleForNode(example, options))) as Exports;
}

/** Bundles an example as Wrangler does, and starts it in workerd, until the test ends. */
export async function startInWorkerd(example: string, options: object): Promise<Miniflare> {
  return startWorkers({ ...(await bundleForWorkerd(example)), ...options });
}

/** Bundles an example as Wrangler does. @returns options of a Worker in Miniflare */
export async function bundleForWorkerd(example: string) {
  const script = await bundle(example, { platform: "browser", format: "esm", target: "es2022" });
  return { modules: true, script, compatibilityDate: "2026-04-01" } as const;
}

/** Starts Workers, until the test ends. */
export async function startWorkers(options: MiniflareOptions): Promise<Miniflare> {
  const worker = new Miniflare(options);
  onTestFinished(() => worker.dispose());
  await worker.ready;
  return worker;
}

/** An example in Next.js's Edge runtime. */
export interface OnTheEdge {
  readonly vm: EdgeVM;
  /** Its exported handler. */
  POST(request: Request): Promise<Response>;
  /** The promises that it passed to `after`. */
  readonly work: Promise<unknown>[];
}

/** Bundles an example for the Edge runtime, and loads it there. */
export async function loadOnTheEdge(
  example: string,
  env: Readonly<Record<string, string>>,
): Promise<OnTheEdge> {
  const script = await bundle(example, {
    alias: { "next/server": "./test/examples/after.ts" },
    platform: "browser",
    format: "iife",
    globalName: "example",
  });
  const work: Promise<unknown>[] = [];
  const vm = new EdgeVM({
    extend: (context) => Object.assign(context, { process: { env: { ...env } }, platformWork: work }),
  });
  const POST = vm.evaluate<OnTheEdge["POST"]>(`${script};example.POST`);
  return { vm, POST, work };
}
