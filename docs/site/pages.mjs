// The pages of the site: README.md and everything that its links lead to. Their texts stay as they are in the repository,
// only links change, because folders do. The page of an example shows its programs, too.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join, posix } from "node:path";
import { project } from "../../tools/load.mjs";
import { changeLinks, isImage } from "../../tools/whole-links.mjs";

/**
 * @typedef {object} Page
 * @property {string} file where it stands in the repository, `examples/README.md`
 * @property {string} path where it stands on the site, `examples/index.md`
 * @property {boolean} isSource whether it shows a file or folder that is no page in the repository
 * @property {boolean} hasPrograms whether it shows the programs of its example
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
  const programs = new Set();
  const path = pathOf(file);
  const own = changeLinks(markdown, (link, heading) => {
    const target = posix.join(posix.dirname(isSource ? "." : file), link).replace(/\/$/, "");
    const example = exampleOf(target);
    if (isImage(target)) images.push({ file: target, path: pathOf(target) });
    else links.push(example ?? target);
    if (example === undefined) return posix.relative(posix.dirname(path), pathOf(target)) + heading;
    const anchor = `#${anchorOf(posix.relative(posix.dirname(example), target))}`;
    if (example !== file) return posix.relative(posix.dirname(path), pathOf(example)) + anchor;
    programs.add(target);
    return anchor;
  });
  const shown = [...programs].map(
    (each) => `## ${posix.relative(posix.dirname(file), each)}\n\n${fenced(each)}\n`,
  );
  const text = [own, ...(shown.length > 0 ? [programsBegin, ...shown] : [])].join("\n");
  const title = plain(/^# (.*)$/m.exec(markdown)[1]);
  const description = isSource ? `${title}, as it stands in the repository.` : descriptionOf(markdown);
  const hasPrograms = programs.size > 0;
  return { file, path, isSource, hasPrograms, title, description, text, links, images };
}

/** What stands between an example's own text and its programs. */
export const programsBegin = "<!-- programs -->\n";

/** The example whose page shows this file; undefined if the file is none of an example with a page. */
function exampleOf(file) {
  const folder = /^examples\/[^/]+(?=\/)/.exec(file)?.[0];
  if (folder === undefined || /\.md$/.test(file) || isImage(file) || isFolder(file)) return undefined;
  const page = `${folder}/README.md`;
  return existsSync(join(project, page)) ? page : undefined;
}

/** The anchors that GitHub makes of headings, as the docs use them. */
export function anchorOf(heading) {
  const letters = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "");
  return letters.trim().replaceAll(" ", "-");
}

/** `docs/lock.md` is `lock.md`, `examples/README.md` is `examples/index.md`, and `examples/next/route.ts` is `examples/next/route.ts.md`. */
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
  return `# ${file}\n\n${fenced(file)}\n`;
}

function fenced(file) {
  const language = extname(file).slice(1).replace("mjs", "js");
  const text = readFileSync(join(project, file), "utf8");
  return `\`\`\`\`${language}\n${text.trimEnd()}\n\`\`\`\``;
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

/** The pages of the sidebar, in its order. What it does not name, and belongs to those who change the code, comes last. */
const groups = {
  Start: [
    "docs/getting-started.md",
    "docs/contents.md",
    "examples/README.md",
    "docs/choosing.md",
    "docs/migrating.md",
    "docs/frameworks.md",
    "docs/platforms.md",
  ],
  Locks: [
    "docs/lock.md",
    "docs/fencing.md",
    "docs/who-holds.md",
    "docs/concurrency.md",
    "docs/mailbox.md",
    "docs/cron.md",
    "docs/refresh-once.md",
    "docs/outages.md",
    "docs/testing.md",
  ],
  "Webhooks and APIs": [
    "docs/webhooks.md",
    "docs/idempotency-key.md",
    "docs/queues.md",
    "docs/rotate-secret.md",
    "docs/inbox.md",
  ],
  Safety: [
    "docs/safety.md",
    "docs/incidents.md",
    "docs/internals/algorithm.md",
    "docs/internals/evidence.md",
  ],
  Reference: [
    "docs/options.md",
    "docs/waiting.md",
    "docs/sync.md",
    "docs/errors.md",
    "docs/http.md",
    "docs/senders.md",
    "docs/idempotency.md",
    "docs/operations.md",
    "docs/observability.md",
  ],
  Servers: ["local/README.md", "local/docs/reference.md", "lock-server/README.md", "worker/README.md"],
};

/**
 * The groups of the sidebar. Below the page of all examples are theirs, in its order.
 *
 * @param {Map<string, Page>} pages
 * @returns {{ text: string, items: { text: string, link: string, target?: string, collapsed?: boolean, items?: object[] }[] }[]}
 */
export function sidebarOf(pages) {
  const item = ({ title, path }) => ({ text: title, link: `/${path}` });
  const withExamples = (file) => {
    const page = pages.get(file);
    if (!page) throw new Error(`docs/site/pages.mjs names ${file}, to which no page leads`);
    if (file !== "examples/README.md") return item(page);
    return { ...item(page), collapsed: true, items: examplesOf(page).map((link) => item(pages.get(link))) };
  };
  const named = [
    "README.md",
    ...Object.values(groups).flat(),
    ...examplesOf(pages.get("examples/README.md")),
  ];
  const others = [...pages.values()].filter(({ isSource, file }) => !isSource && !named.includes(file));
  const forgotten = others.find(({ file }) => /^docs\/[^/]+$/.test(file));
  if (forgotten) throw new Error(`docs/site/pages.mjs has no group for ${forgotten.file}`);
  return [
    ...Object.entries(groups).map(([text, files]) => ({
      text,
      items: [...files.map(withExamples), ...(text === "Reference" ? [api] : [])],
    })),
    { text: "Contribute", items: others.map(item) },
  ];
}

/** The reference from docstrings, which stands in no file of the repository. */
export const api = { text: "API reference", link: "/api/index.md", collapsed: true };

const examplesOf = ({ links }) => links.filter((link) => /^examples\/.*\.md$/.test(link));

/** The index that https://llmstxt.org describes. */
export function llmsText(pages, { name, description }) {
  const byPath = new Map(Array.from(pages.values(), (page) => [page.path, page]));
  const line = (path) => `- [${byPath.get(path).title}](${path}): ${byPath.get(path).description}`;
  const linesOf = ({ items }) =>
    items
      .filter((item) => item !== api)
      .flatMap((item) => [item, ...(item.items ?? [])])
      .map(({ link }) => line(link.slice(1)));
  const sidebar = sidebarOf(pages);
  const contribute = sidebar.pop();
  const linked = [...pages.values()].filter(({ isSource }) => !isSource).flatMap(({ links }) => links);
  const sources = [...pages.values()].filter(({ isSource, file }) => isSource && linked.includes(file));
  return [
    `# ${name}\n\n> ${description}\n`,
    "Start with the [README](index.md): what it does, in a few programs.\n",
    ...sidebar.map((group) => `## ${group.text}\n\n${linesOf(group).join("\n")}\n`),
    `## Optional\n\n${linesOf(contribute).join("\n")}`,
    `${sources.map(({ title, path }) => `- [${title}](${path})`).join("\n")}\n`,
  ].join("\n");
}
