// The pages of the site: README.md and everything that its links lead to. Their texts stay as they are in the repository,
// only links change, because folders do.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join, posix } from "node:path";
import { project } from "../../tools/load.mjs";

/** Code, which has links that are none. */
const code = /(^([ \t]*`{3,})[^`\n]*\n[\s\S]*?^\2[ \t]*$|`[^`\n]+`)/gm;
const isImage = (path) => /\.(png|svg)$/.test(path);

/**
 * @typedef {object} Page
 * @property {string} file where it stands in the repository, `examples/README.md`
 * @property {string} path where it stands on the site, `examples/index.md`
 * @property {boolean} isSource whether it shows a file or folder that is no page in the repository
 * @property {string} title
 * @property {string} description
 * @property {string} text Markdown, with the site's links
 * @property {string[]} links the repository's files that it leads to, in its order
 * @property {{ file: string, path: string }[]} images
 */

/** @returns {Map<string, Page>} by file, in the order in which README.md leads to them */
export function readPages() {
  const pages = new Map();
  const files = ["README.md"];
  for (const file of files) {
    if (pages.has(file)) continue;
    const page = readPage(file);
    pages.set(file, page);
    files.push(...page.links);
  }
  const own = below("docs").filter((file) => file.endsWith(".md") && !file.startsWith("docs/site/"));
  const lost = own.filter((file) => !pages.has(file));
  if (lost.length > 0) throw new Error(`no page leads to ${lost.join(", ")}`);
  return pages;
}

/** @returns {Page} */
function readPage(file) {
  const isSource = !file.endsWith(".md");
  const markdown = isSource ? sourceText(file) : readFileSync(join(project, file), "utf8");
  const links = [];
  const images = [];
  const path = pathOf(file);
  const text = outsideCode(markdown, (prose) =>
    prose.replace(/\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)/g, (_, link, heading = "") => {
      const target = posix.join(posix.dirname(isSource ? "." : file), link).replace(/\/$/, "");
      if (isImage(target)) images.push({ file: target, path: pathOf(target) });
      else links.push(target);
      return `](${posix.relative(posix.dirname(path), pathOf(target))}${heading})`;
    }),
  );
  const title = plain(/^# (.*)$/m.exec(markdown)[1]);
  const description = isSource ? `${title}, as it stands in the repository.` : descriptionOf(markdown);
  return { file, path, isSource, title, description, text, links, images };
}

/** `docs/once.md` is `once.md`, `examples/README.md` is `examples/index.md`, and `examples/cron/interval.mjs` is `examples/cron/interval.mjs.md`. */
function pathOf(file) {
  const path = file.replace(/(^|\/)docs\//, "$1").replace(/README\.md$/, "index.md");
  if (isImage(path) || path.endsWith(".md")) return path;
  return isFolder(file) ? `${path}/index.md` : `${path}.md`;
}

const isFolder = (file) => statSync(join(project, file)).isDirectory();

function below(folder) {
  return readdirSync(join(project, folder), { recursive: true, encoding: "utf8" })
    .map((name) => posix.join(folder, name.replaceAll("\\", "/")))
    .filter((file) => !isFolder(file))
    .sort();
}

function sourceText(file) {
  if (isFolder(file)) {
    const items = below(file).map((name) => `- [${name}](${name})`);
    return `# ${file}/\n\n${items.join("\n")}\n`;
  }
  const language = extname(file).slice(1).replace("mjs", "js");
  const text = readFileSync(join(project, file), "utf8");
  return `# ${file}\n\n\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\`\n`;
}

function outsideCode(markdown, change) {
  let rest = 0;
  let changed = "";
  for (const { index, 0: found } of markdown.matchAll(code)) {
    changed += change(markdown.slice(rest, index)) + found;
    rest = index + found.length;
  }
  return changed + change(markdown.slice(rest));
}

/** The first sentences of a page's first paragraph, about 160 characters of them. */
function descriptionOf(markdown) {
  const blocks = markdown.replace(/^([ \t]*`{3,})[\s\S]*?^\1$/gm, "").split(/\n{2,}/);
  const paragraph = blocks.find((block) => /^[^#!|<\s\d-]/.test(block)) ?? blocks[0];
  const [first, ...others] = plain(paragraph).split(/(?<=[.?!])\s/);
  let description = first.length <= 200 ? first : `${first.slice(0, first.lastIndexOf(" ", 200))} …`;
  for (const sentence of others) {
    if (description.length + sentence.length > 160) break;
    description += ` ${sentence}`;
  }
  return description;
}

/** Markdown without its marks. */
function plain(markdown) {
  return markdown
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[`*]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/**
 * The order of the docs, which README.md has under its headings "Documentation" and "Contribute"; what it names
 * elsewhere comes last. Below the page of all examples are theirs, in its order.
 *
 * @param {Map<string, Page>} pages
 * @returns {{ text: string, items: { text: string, link: string, collapsed?: boolean, items?: object[] }[] }[]}
 */
export function sidebarOf(pages) {
  const all = [...pages.values()].filter(({ isSource, file }) => !isSource && file !== "README.md");
  const home = readFileSync(join(project, "README.md"), "utf8").split("\n## Documentation\n")[1];
  const placeOf = ({ file }) => {
    const place = home.indexOf(`](${file}`);
    return place === -1 ? home.length : place;
  };
  const ordered = all.toSorted((one, other) => placeOf(one) - placeOf(other));
  const matching = (files) => ordered.filter(({ file }) => files.test(file));
  const item = (page) => ({ text: page.title, link: `/${page.path}` });
  const withExamples = (page) => {
    if (page.file !== "examples/README.md") return item(page);
    const own = page.links.filter((link) => /^examples\/.*\.md$/.test(link));
    return { ...item(page), collapsed: true, items: own.map((link) => item(pages.get(link))) };
  };
  const chapters = matching(/^(docs\/[^/]+|examples\/README|lock-server\/README|local\/.*)\.md$/);
  return [
    { text: "Documentation", items: chapters.map(withExamples) },
    { text: "Internals", items: matching(/^(docs\/internals|bench)\//).map(item) },
    { text: "Contribute", items: matching(/^[^/]+$/).map(item) },
  ];
}

/** The index that https://llmstxt.org describes. */
export function llmsText(pages, { name, description }) {
  const [first, ...others] = sidebarOf(pages).map(({ text, items }) => ({
    text,
    links: items.flatMap((item) => [item, ...(item.items ?? [])]).map(({ link }) => link.slice(1)),
  }));
  const byPath = new Map(Array.from(pages.values(), (page) => [page.path, page]));
  const line = (path) => `- [${byPath.get(path).title}](${path}): ${byPath.get(path).description}`;
  const linked = [...pages.values()].filter(({ isSource }) => !isSource).flatMap(({ links }) => links);
  const sources = [...pages.values()].filter(({ isSource, file }) => isSource && linked.includes(file));
  return [
    `# ${name}\n\n> ${description}\n`,
    "Start with the [README](index.md): what it does, in three programs.\n",
    `## ${first.text}\n\n${first.links.map(line).join("\n")}\n`,
    `## Optional\n\n${others.flatMap(({ links }) => links.map(line)).join("\n")}`,
    `${sources.map(({ title, path }) => `- [${title}](${path})`).join("\n")}\n`,
  ].join("\n");
}
