// `node tools/release-check.mjs v0.1.0`: whether all packages can be published as this tag's version. Prints what is
// missing, and fails if anything is. With `--notes` it prints the release's notes instead, as CHANGELOG.md has them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));
const [tag = "", option] = process.argv.slice(2);
const version = tag.replace(/^v/, "");

const text = (path) => readFileSync(join(project, path), "utf8");
const packages = [undefined, "lock-server", "local"].map((folder) => {
  return { ...JSON.parse(text(join(folder ?? "", "package.json"))), folder };
});
const entries = text("CHANGELOG.md").split(/^(?=## )/m);
const [title = "", ...lines] = entries.find((entry) => entry.split(/\s/)[1] === version)?.split("\n") ?? [];
const notes = lines.join("\n").trim();

function obstaclesOf({ name, version: own, repository, folder, peerDependencies }) {
  const peer = peerDependencies["redlock-edge"];
  return [
    // It knows the scripts of one version.
    folder === "lock-server" &&
      peer !== version &&
      `${name} is for redlock-edge ${peer}, and the tag says ${version}`,
    own !== version && `${name} has version ${own}, and the tag says ${version}`,
    // The registry compares it with where the package was built.
    !repository && `${name} has no repository in package.json: its provenance would lead nowhere`,
    // Relative links and images of a README begin there.
    repository &&
      repository.directory !== folder &&
      `the repository of ${name} has the directory ${repository.directory}, and it is ${folder}`,
  ];
}

const obstacles = [
  !/^v\d+\.\d+\.\d+(-[\w.]+)?$/.test(tag) && `'${tag}' is not a tag of a version, such as v1.2.3`,
  ...packages.flatMap(obstaclesOf),
  !title && `CHANGELOG.md has no entry '## ${version}'`,
  title && !/\d{4}-\d{2}-\d{2}/.test(title) && `CHANGELOG.md has no date of ${version}: '${title}'`,
  title && !notes && `CHANGELOG.md says nothing of ${version}`,
].filter(Boolean);

if (option === "--notes") {
  console.log(notes);
} else {
  for (const obstacle of obstacles) console.error(obstacle);
  if (obstacles.length === 0) console.log(`${packages.map(({ name }) => name).join(", ")}: ready for ${tag}`);
  process.exitCode = obstacles.length > 0 ? 1 : 0;
}
