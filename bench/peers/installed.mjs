// The packages that are measured beside this one, and their versions.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { project } from "../../scripts/load.mjs";

export * as peers from "./packages.mjs";

/** A package's name with the version that is installed. */
export function versioned(name) {
  const { version: number } = JSON.parse(
    readFileSync(join(project, "node_modules", name, "package.json"), "utf8"),
  );
  return `${name} ${number.replace(/^v/, "")}`;
}
