// `node scripts/release-check.mjs v0.1.0`: whether both packages can be published as this tag's version. Prints what is
// missing, and fails if anything is.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));

/**
 * What stands against a release, as sentences.
 *
 * @param {object} release
 * @param {string} release.tag
 * @param {{ name: string, version: string, repository?: unknown }[]} release.packages
 * @param {string} release.changelog
 * @returns {string[]}
 */
export function obstacles({ tag, packages, changelog }) {
  const version = tag.replace(/^v/, "");
  return [
    ...(/^v\d+\.\d+\.\d+(-[\w.]+)?$/.test(tag) ? [] : [`'${tag}' is not a tag of a version, such as v1.2.3`]),
    ...packages.flatMap((one) => obstaclesOf(one, version)),
    ...obstaclesInChangelog(changelog, version),
  ];
}

function obstaclesOf({ name, version, repository }, wanted) {
  return [
    ...(version === wanted ? [] : [`${name} has version ${version}, and the tag says ${wanted}`]),
    // The registry compares it with where the package was built.
    ...(repository ? [] : [`${name} has no repository in package.json: its provenance would lead nowhere`]),
  ];
}

function obstaclesInChangelog(changelog, version) {
  const entry = changelog
    .split("\n")
    .find((line) => line.startsWith("## ") && line.split(" ")[1] === version);
  if (entry === undefined) return [`CHANGELOG.md has no entry '## ${version}'`];
  const isDated = /\d{4}-\d{2}-\d{2}/.test(entry);
  return isDated ? [] : [`CHANGELOG.md has no date of ${version}: '${entry}'`];
}

function main(tag) {
  const text = (path) => readFileSync(join(project, path), "utf8");
  const packages = ["package.json", "local/package.json"].map((path) => JSON.parse(text(path)));
  const found = obstacles({ tag, packages, changelog: text("CHANGELOG.md") });
  for (const obstacle of found) console.error(obstacle);
  if (found.length === 0) console.log(`${packages.map(({ name }) => name).join(" and ")}: ready for ${tag}`);
  process.exitCode = found.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv[2] ?? "");
