import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Links of a built site that lead to no file of it, or to nothing that has this `id`.
 *
 * @param {string} folder
 * @param {string} base the path under which the site stands, "/redlock-edge/"
 * @returns {Promise<string[]>} `page: link`
 */
export async function deadLinks(folder, base) {
  const names = await readdir(folder, { recursive: true });
  const files = names
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => /\.(html|md|txt|svg)$/.test(name));
  const texts = new Map();
  for (const file of files) texts.set(file, await readFile(join(folder, file), "utf8"));
  const isDead = (from, link) => {
    const { pathname, hash, host } = new URL(link, `http://site${base}${from}`);
    if (host !== "site") return false;
    if (!pathname.startsWith(base)) return true;
    const file = decodeURIComponent(pathname.slice(base.length)).replace(/(^|\/)$/, "$1index.html");
    if (!existsSync(join(folder, file))) return true;
    const page = texts.get(file.replace(/\.md$/, ".html"));
    return hash.length > 1 && !page?.includes(`id="${decodeURIComponent(hash.slice(1))}"`);
  };
  return files.flatMap((file) =>
    linksOf(file, texts.get(file))
      .filter((link) => isDead(file, link))
      .map((link) => `${file}: ${link}`),
  );
}

function linksOf(file, text) {
  const links = file.endsWith(".html")
    ? text.replace(/<(script|style)\b[\s\S]*?<\/\1>/g, "").matchAll(/\s(?:href|src)="([^"]*)"/g)
    : text.replace(/^([ \t]*`{3,})[\s\S]*?^\1$|`[^`\n]+`/gm, "").matchAll(/\]\(([^)\s]+)\)/g);
  return [...new Set(Array.from(links, ([, link]) => link.replaceAll("&amp;", "&")))];
}
