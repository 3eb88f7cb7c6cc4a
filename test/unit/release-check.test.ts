import { expect, test } from "vitest";
import { entryOf, obstacles } from "../../tools/release-check.mjs";

const one = { name: "one", version: "1.2.0", repository: { type: "git", url: "https://repository.example" } };
const other = {
  ...one,
  name: "other",
  folder: "other",
  repository: { ...one.repository, directory: "other" },
};
const changelog = "# Changelog\n\n## 1.2.0 (2030-01-31)\n\n- News.\n\n## 1.1.0 (2029-12-01)\n";
const release = { tag: "v1.2.0", packages: [one, other], changelog };

test("nothing stands against a complete release", () => {
  expect(obstacles(release)).toEqual([]);
});

test("the notes of a release are its entry alone", () => {
  expect(entryOf(changelog, "1.2.0").notes).toBe("- News.");
});

test.each([
  ["a tag that is not a version", { tag: "1.2.0" }, "'1.2.0' is not a tag of a version, such as v1.2.3"],
  ["no tag", { tag: "" }, "'' is not a tag of a version, such as v1.2.3"],
  ["another tag", { tag: "v1.1.0" }, "other has version 1.2.0, and the tag says 1.1.0"],
  [
    "another version of one package",
    { packages: [one, { ...other, version: "1.1.0" }] },
    "other has version 1.1.0, and the tag says 1.2.0",
  ],
  [
    "no repository",
    { packages: [one, { name: "other", version: "1.2.0" }] },
    "other has no repository in package.json: its provenance would lead nowhere",
  ],
  [
    "a package of a folder that its repository does not name",
    { packages: [one, { ...other, repository: one.repository }] },
    "the repository of other has the directory undefined, and it is other",
  ],
  [
    "an entry without a text",
    { changelog: "## 1.2.0 (2030-01-31)\n\n## 1.1.0 (2029-12-01)\n\n- Old.\n" },
    "CHANGELOG.md says nothing of 1.2.0",
  ],
  [
    "a changelog of longer versions",
    { changelog: "## 1.2.0-beta (2030-01-01)\n## 1.2.01 (2030-01-01)\n" },
    "CHANGELOG.md has no entry '## 1.2.0'",
  ],
  [
    "an entry that is not released",
    { changelog: "## 1.2.0 (unreleased)\n" },
    "CHANGELOG.md has no date of 1.2.0: '## 1.2.0 (unreleased)'",
  ],
])("%s stands against it", (_, change, obstacle) => {
  expect(obstacles({ ...release, ...change })).toContain(obstacle);
});
