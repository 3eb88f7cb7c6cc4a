import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { installPacked, type Project } from "../support/packed.ts";
import type { Program } from "./programs.ts";

export const resolutions = ["bundler", "nodenext"] as const;
export type Resolution = (typeof resolutions)[number];

/** What `tsc --init` and the common platforms' templates set. */
const strict = {
  target: "es2022",
  lib: ["es2022", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"],
  types: ["node"],
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  moduleDetection: "force",
  skipLibCheck: true,
  allowJs: true,
  checkJs: true,
  noEmit: true,
};

const modules: Record<Resolution, object> = {
  bundler: { module: "esnext", moduleResolution: "bundler" },
  nodenext: { module: "nodenext" },
};

/** A project with the packed package, all packages that pages import, and the programs. */
export async function openProject(programs: readonly Program[]): Promise<Project> {
  const project = await installPacked();
  const { devDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
    devDependencies: Record<string, string>;
  };
  for (const name of Object.keys(devDependencies)) {
    const link = join(project.folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(resolve("node_modules", name), link);
  }
  for (const { path, text } of programs) {
    mkdirSync(dirname(join(project.folder, path)), { recursive: true });
    writeFileSync(join(project.folder, path), text);
  }
  return project;
}

/** Compiles all programs at once, and returns the errors. Their paths name the page and the line of the block. */
export async function compile(
  project: Project,
  programs: readonly Program[],
  resolution: Resolution,
): Promise<string[]> {
  const config = join(project.folder, `tsconfig.${resolution}.json`);
  const files = programs.map(({ path }) => path);
  writeFileSync(config, JSON.stringify({ compilerOptions: { ...strict, ...modules[resolution] }, files }));
  const tsc = resolve("node_modules/@typescript/native/bin/tsc");
  const args = [tsc, "-p", config, "--pretty", "false"];
  // It ends with 1 where it has found errors.
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: project.folder }).catch(
    (error) => error,
  );
  const printed: string = stdout + stderr;
  const errors = printed.split("\n").filter((line) => line.includes("error TS"));
  if (printed !== "" && errors.length === 0) throw new Error(printed);
  return errors;
}
