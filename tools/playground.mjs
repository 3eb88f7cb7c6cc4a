// Builds the playground, one page without requests to anywhere, and serves it: `node tools/playground.mjs`. `--build file.html`
// writes the page instead.
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { readArguments } from "./arguments.mjs";
import { bundle } from "./bundle.mjs";
import { project } from "./load.mjs";
import { repositoryAddress } from "./whole-links.mjs";

/**
 * The page, as one HTML document.
 *
 * @param {(path: string) => string} [addressOf] where a page of the docs can be read, by its path in the repository. Default: in
 * the repository, or on npm while package.json has none.
 */
export async function playgroundHtml(addressOf = published) {
  const folder = join(project, "playground");
  const bundled = await bundle("playground/main.ts", { minify: true });
  const [html, styles] = await Promise.all(
    ["index.html", "style.css"].map((name) => readFile(join(folder, name), "utf8")),
  );
  // In a script, only this text would end it.
  const script = bundled.replaceAll("</script", "<\\/script");
  const linked = html.replace(/href="([^"]+\.md)"/g, (_, path) => `href="${addressOf(path)}"`);
  return linked.replace("/* styles */", () => styles).replace("/* script */", () => script);
}

function published(path) {
  const repository = repositoryAddress();
  return repository ? `${repository}/blob/main/${path}` : "https://www.npmjs.com/package/redlock-edge";
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

async function main() {
  const usage = "node tools/playground.mjs [--port 8080 | --build file.html]";
  const { port, build: file } = readArguments({ port: { type: "string" }, build: { type: "string" } }, usage);
  const html = await playgroundHtml();
  if (file) {
    await writeFile(file, html);
    console.log(`wrote ${file}`);
    return;
  }
  const server = createServer((_, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(html);
  });
  server.listen(Number(port ?? 0), "127.0.0.1", () => {
    console.log(`The playground: http://localhost:${server.address().port}/ (Ctrl+C ends it)`);
  });
}
