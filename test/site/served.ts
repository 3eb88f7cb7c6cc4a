import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";

const types: Record<string, string> = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

/** Serves a folder under a path as GitHub Pages does. Close the server at the end. */
export async function serveFolder(folder: string, base: string): Promise<{ url: string; server: Server }> {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url!, "http://localhost");
    const name = pathname.replace(base, "/").replace(/\/$/, "/index.html");
    try {
      if (!pathname.startsWith(base)) throw new Error("elsewhere");
      const body = await readFile(join(folder, name));
      response.setHeader("content-type", types[extname(name)] ?? "text/plain; charset=utf-8");
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`, server };
}
