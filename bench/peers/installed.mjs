// The packages that are measured beside this one, and their versions.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { project } from "../../tools/load.mjs";
import { npmCi } from "../../tools/npm-ci.mjs";

npmCi("bench");
export const peers = await import("./packages.mjs");

/** A package's name with the version that is installed. */
export function versioned(name) {
  const folders = ["bench", "."].map((folder) => join(project, folder, "node_modules", name, "package.json"));
  const { version: number } = JSON.parse(readFileSync(folders.find(existsSync), "utf8"));
  return `${name} ${number.replace(/^v/, "")}`;
}
