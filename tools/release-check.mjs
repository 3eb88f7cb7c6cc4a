// `node tools/release-check.mjs v0.1.0`: whether all packages can be published as this tag's version. Prints what is
// missing, and fails if anything is. With `--notes` it prints the release's notes instead, as CHANGELOG.md has them.
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
 * @param {{ name: string, version: string, repository?: { url: string, directory?: string }, folder?: string, peerDependencies?: Record<string, string> }[]} release.packages
 *   `folder`: where it is, unless it is at the top
 * @param {string} release.changelog
 * @returns {string[]}
 */
function obstacles({ tag, packages, changelog }) {
  const version = tag.replace(/^v/, "");
  return [
    ...(/^v\d+\.\d+\.\d+(-[\w.]+)?$/.test(tag) ? [] : [`'${tag}' is not a tag of a version, such as v1.2.3`]),
    ...packages.flatMap((one) => obstaclesOf(one, version)),
    ...obstaclesInChangelog(changelog, version),
  ];
}

function obstaclesOf({ name, version, repository, folder, peerDependencies }, wanted) {
  const found = [];
  // It knows the scripts of one version.
  if (folder === "lock-server" && peerDependencies["redlock-edge"] !== wanted)
    found.push(`${name} is for redlock-edge ${peerDependencies["redlock-edge"]}, and the tag says ${wanted}`);
  if (version !== wanted) found.push(`${name} has version ${version}, and the tag says ${wanted}`);
  // The registry compares it with where the package was built.
  if (!repository) found.push(`${name} has no repository in package.json: its provenance would lead nowhere`);
  // Relative links and images of a README begin there.
  else if (repository.directory !== folder)
    found.push(`the repository of ${name} has the directory ${repository.directory}, and it is ${folder}`);
  return found;
}

function obstaclesInChangelog(changelog, version) {
  const { title, notes } = entryOf(changelog, version);
  if (title === undefined) return [`CHANGELOG.md has no entry '## ${version}'`];
  const found = [];
  if (!/\d{4}-\d{2}-\d{2}/.test(title)) found.push(`CHANGELOG.md has no date of ${version}: '${title}'`);
  if (notes === "") found.push(`CHANGELOG.md says nothing of ${version}`);
  return found;
}

/** What a changelog says of a version, without `v`. Without a title: nothing. */
export function entryOf(changelog, version) {
  const entries = changelog.split(/^(?=## )/m);
  const [title, ...lines] =
    entries.find((entry) => entry.startsWith("## ") && entry.split(/\s/)[1] === version)?.split("\n") ?? [];
  return { title, notes: lines.join("\n").trim() };
}

function main(tag, notes) {
  const text = (path) => readFileSync(join(project, path), "utf8");
  const packages = [undefined, "lock-server", "local"].map((folder) => {
    return { ...JSON.parse(text(join(folder ?? "", "package.json"))), folder };
  });
  const changelog = text("CHANGELOG.md");
  if (notes) return console.log(entryOf(changelog, tag.replace(/^v/, "")).notes);
  const found = obstacles({ tag, packages, changelog });
  for (const obstacle of found) console.error(obstacle);
  if (found.length === 0) console.log(`${packages.map(({ name }) => name).join(", ")}: ready for ${tag}`);
  process.exitCode = found.length > 0 ? 1 : 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main(process.argv[2] ?? "", process.argv[3] === "--notes");
}
