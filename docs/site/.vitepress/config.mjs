import { readFileSync } from "node:fs";
import { join } from "node:path";
import { renderMermaidSVG } from "beautiful-mermaid";
import { defineConfig } from "vitepress";
import { project } from "../../../tools/load.mjs";
import { repositoryAddress } from "../../../tools/whole-links.mjs";
import { anchorOf, programsBegin, readPages, sidebarOf } from "../pages.mjs";
import { addressRows, miniSearch, rowsAsSections } from "../search.mjs";

const { name, description } = JSON.parse(readFileSync(join(project, "package.json"), "utf8"));
const pages = readPages();
const byPath = new Map(Array.from(pages.values(), (page) => [page.path, page]));
const navigation = (file) => ({ text: pages.get(file).title, link: `/${pages.get(file).path}` });
const address = repositoryAddress();

/** Draws a diagram. Its dotted arrows lead back, so they are laid out the other way round: the start stays on top. */
function drawDiagram(text) {
  const forward = text.replace(/(\w+) -\.->(\|[^|]*\|) (\w+)/g, "$3 <-.-$2 $1");
  return (
    renderMermaidSVG(forward, { transparent: true, layerSpacing: 30, padding: 8 })
      .replace(/<svg [^>]*?(viewBox="[^"]*")[^>]*>/, "<svg $1>")
      // It would load a font from elsewhere.
      .replace(/@import .*/, "")
      // Heads of arrows at their start would point away.
      .replace("auto-start-reverse", "auto")
  );
}

export default defineConfig({
  title: name,
  description,
  lang: "en",
  srcDir: ".pages",
  outDir: "dist",
  cacheDir: "node_modules/.cache/vitepress",
  head: [["link", { rel: "icon", href: "data:," }]],
  transformPageData({ relativePath }) {
    const page = byPath.get(relativePath);
    return {
      // VitePress does not escape it.
      description: page?.description.replaceAll('"', "'"),
      frontmatter: page?.isSource || page?.hasPrograms ? { aside: false, pageClass: "source" } : {},
    };
  },
  // Readers of https://llmstxt.org look for the page's Markdown.
  transformHead({ pageData: { relativePath }, siteData: { base } }) {
    if (!byPath.has(relativePath)) return [];
    return [["link", { rel: "alternate", type: "text/markdown", href: base + relativePath }]];
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
      const { fence } = markdown.renderer.rules;
      markdown.renderer.rules.fence = (tokens, index, ...rest) =>
        tokens[index].info === "mermaid" && markdown.options.highlight
          ? `<div class="diagram" v-pre>${drawDiagram(tokens[index].content)}</div>`
          : fence(tokens, index, ...rest);
    },
  },
  themeConfig: {
    nav: [
      navigation("docs/getting-started.md"),
      navigation("examples/README.md"),
      { text: "Playground", link: "/playground/", target: "_self" },
    ],
    sidebar: sidebarOf(pages),
    outline: [2, 3],
    socialLinks: address && [{ icon: "github", link: address }],
    search: {
      provider: "local",
      options: {
        miniSearch,
        _render(text, env, markdown) {
          if (byPath.get(env.relativePath)?.isSource) return "";
          // Colours would take seconds. The renderer is that of the pages.
          const { highlight } = markdown.options;
          markdown.set({ highlight: null });
          const html = markdown.render(text.split(programsBegin)[0], env);
          markdown.set({ highlight });
          return rowsAsSections(html);
        },
      },
    },
  },
});
