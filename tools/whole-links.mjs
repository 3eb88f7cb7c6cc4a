// `node tools/whole-links.mjs README.md`, before `npm publish` packs: the links of a package's README.md lead into the
// repository, because the package has no docs/. `--restore` afterwards. Nothing while package.json has no `repository`.
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { project } from "./load.mjs";

/** Code, which has links that are none. */
const code = /(^([ \t]*`{3,})[^`\n]*\n[\s\S]*?^\2[ \t]*$|`[^`\n]+`)/gm;

/** Whether a path is that of an image. */
export const isImage = (path) => /\.(png|svg)$/.test(path);

/**
 * Changes the relative links of a page.
 *
 * @param {string} markdown
 * @param {(path: string, heading: string) => string} change `heading` has its `#`, or is empty
 */
export function changeLinks(markdown, change) {
  const changeAll = (prose) =>
    prose.replace(
      /\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)/g,
      (_, path, heading = "") => `](${change(path, heading)})`,
    );
  let rest = 0;
  let changed = "";
  for (const { index, 0: found } of markdown.matchAll(code)) {
    changed += changeAll(markdown.slice(rest, index)) + found;
    rest = index + found.length;
  }
  return changed + changeAll(markdown.slice(rest));
}

/**
 * Where the repository can be read.
 *
 * @returns {string | undefined} without a `/` at its end; undefined while package.json has no `repository`
 */
export function repositoryAddress() {
  const { repository } = manifest();
  return (repository?.url ?? repository)?.replace(/^git\+|\.git$/g, "");
}

/**
 * The address of a file of this version, which its tag has.
 *
 * @param {string} path in the repository
 */
function wholeUrl(path) {
  return `${repositoryAddress()}/${isImage(path) ? "raw" : "blob"}/v${manifest().version}/${path}`;
}

/** A docstring's or an error's text, in which `docs/page.md` is a whole URL where there is a repository. */
export function withWholeUrls(text) {
  if (repositoryAddress() === undefined) return text;
  return text.replace(/`?\b(?<!\/)(docs\/[\w/-]+\.md)`?/g, (found, path) =>
    existsSync(join(project, path)) ? wholeUrl(path) : found,
  );
}

function manifest() {
  return JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
}

function makeWhole(page) {
  const folder = posix.dirname(relative(project, resolve(page)).replaceAll("\\", "/"));
  const markdown = readFileSync(page, "utf8");
  mkdirSync(dirname(keptOf(page)), { recursive: true });
  cpSync(page, keptOf(page));
  writeFileSync(
    page,
    changeLinks(markdown, (path, heading) => wholeUrl(posix.join(folder, path)) + heading),
  );
}

/** Where a page is kept as it was. */
function keptOf(page) {
  return join(project, "node_modules/.cache/whole-links", relative(project, resolve(page)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [page, restore] = process.argv.slice(2);
  if (existsSync(keptOf(page))) renameSync(keptOf(page), page);
  // Not before `npm pack`: while it packs, tests read the page.
  const isNeeded = process.env.npm_command === "publish" && repositoryAddress() !== undefined;
  if (isNeeded && restore !== "--restore") makeWhole(page);
}
