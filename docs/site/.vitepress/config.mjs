import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { renderMermaidSVG } from "beautiful-mermaid";
import { defineConfig } from "vitepress";
import { project } from "../../../tools/load.mjs";
import { repositoryAddress } from "../../../tools/whole-links.mjs";
import { apiModules } from "../api.mjs";
import { anchorOf, api, programsBegin, readPages, sidebarOf } from "../pages.mjs";
import { addressRows, exportsOf, miniSearch, sectionsOf } from "../search.mjs";

const { name, description } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
const { SITE_ORIGIN: origin, SITE_BASE: base = "/" } = process.env;
const pages = readPages();
const byPath = new Map(Array.from(pages.values(), (page) => [page.path, page]));
const modules = new Map(
  apiModules(join(project, "docs/site/.pages/api")).map((each) => [`api/${each.file}`, each]),
);
const descriptionOf = (path) => byPath.get(path)?.description ?? modules.get(path)?.sentence;
const navigation = (file) => ({ text: pages.get(file).title, link: `/${pages.get(file).path}` });
const address = repositoryAddress();

/** Draws a diagram. None of its arrows may lead back, because its start would not be on top then. */
function drawDiagram(text) {
  return (
    renderMermaidSVG(text, { transparent: true, layerSpacing: 30, padding: 12 })
      .replace(/<svg [^>]*?(viewBox="[^"]*")[^>]*>/, "<svg $1>")
      // It would load a font from elsewhere.
      .replace(/@import .*/, "")
  );
}

/** Gives each cell the name of its column, because a phone shows a row of three columns or more as a list. */
function labelCells(markdown) {
  markdown.core.ruler.push("labels", ({ tokens }) => {
    let names = [];
    let column = 0;
    for (const [index, token] of tokens.entries()) {
      if (token.type === "thead_open") names = [];
      if (token.type === "tr_open") column = 0;
      if (token.type === "th_open") names.push(plainTextOf(tokens[index + 1]));
      if (token.type === "td_open") token.attrSet("data-label", names[column++]);
    }
  });
}

const plainTextOf = ({ children }) => children.map(({ content }) => content).join("");

/** What a link to a page shows in a chat. The picture needs a whole address. */
function preview(path, { title, description: text }) {
  const properties = {
    "og:type": "website",
    "og:site_name": name,
    "og:title": title,
    "og:description": text,
  };
  if (origin !== undefined) {
    properties["og:url"] = origin + base + path.replace(/md$/, "html").replace(/(^|\/)index\.html$/, "$1");
    properties["og:image"] = `${origin}${base}images/twice.png`;
  }
  const metas = Object.entries(properties).map(([property, content]) => ["meta", { property, content }]);
  return [...metas, ["meta", { name: "twitter:card", content: "summary_large_image" }]];
}

/** Below the reference are its modules. */
function withModules(groups) {
  const items = Array.from(modules, ([path, { name: text }]) => ({ text, link: `/${path}` }));
  return groups.map((group) => ({
    ...group,
    items: group.items.map((item) => (item === api ? { ...item, items } : item)),
  }));
}

function frontmatterOf(path, page) {
  if (path.startsWith("api/")) return { pageClass: "api" };
  return page?.isSource || page?.hasPrograms ? { aside: false, pageClass: "source" } : {};
}

export default defineConfig({
  title: name,
  description,
  lang: "en",
  srcDir: ".pages",
  outDir: "dist",
  cacheDir: "node_modules/.cache/vitepress",
  sitemap: origin && { hostname: origin + base },
  transformPageData({ relativePath }) {
    const page = byPath.get(relativePath);
    const module = modules.get(relativePath);
    return {
      ...(module && { title: `API of ${module.name}` }),
      // VitePress does not escape it.
      description: descriptionOf(relativePath)?.replace(/["`]/g, "'"),
      frontmatter: frontmatterOf(relativePath, page),
    };
  },
  transformHead({ pageData: { relativePath }, title: fullTitle, description: text }) {
    const icon = ["link", { rel: "icon", type: "image/svg+xml", href: `${base}favicon.svg` }];
    if (!byPath.has(relativePath) && !relativePath.startsWith("api/")) return [icon];
    // Readers of https://llmstxt.org look for the page's Markdown.
    const own = ["link", { rel: "alternate", type: "text/markdown", href: base + relativePath }];
    return [icon, own, ...preview(relativePath, { title: fullTitle, description: text })];
  },
  // The pages that a page links to are together larger than it.
  router: { prefetchLinks: false },
  // Images stand beside the page, as in its Markdown.
  vue: { template: { transformAssetUrls: { tags: {} } } },
  markdown: {
    anchor: { slugify: anchorOf },
    attrs: { disable: true },
    image: { lazyLoading: true },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config(markdown) {
      markdown.disable("emoji");
      addressRows(markdown);
      labelCells(markdown);
      const { fence } = markdown.renderer.rules;
      markdown.renderer.rules.fence = (tokens, index, ...rest) =>
        tokens[index].info === "mermaid" && markdown.options.highlight
          ? `<div class="diagram" v-pre>${drawDiagram(tokens[index].content)}</div>`
          : fence(tokens, index, ...rest);
    },
  },
  themeConfig: {
    nav: [navigation("docs/getting-started.md"), navigation("examples/README.md")],
    sidebar: withModules(sidebarOf(pages)),
    outline: [2, 3],
    socialLinks: address && [{ icon: "github", link: address }],
    search: {
      provider: "local",
      options: {
        miniSearch: {
          ...miniSearch,
          _splitIntoSections(file, text) {
            const sections = sectionsOf(text, anchorOf);
            return /\/api\/[^/]+$/.test(file) ? exportsOf(sections) : sections;
          },
        },
        detailedView: true,
        // The sections need no HTML, whose colours would take seconds.
        _render: (text, env) => (byPath.get(env.relativePath)?.isSource ? "" : text.split(programsBegin)[0]),
      },
    },
  },
});
