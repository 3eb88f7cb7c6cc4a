import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("what wrangler would deploy has the page's style sheet", async () => {
  const folder = await mkdtemp(join(tmpdir(), "redlock-edge-bundle-"));
  try {
    const wrangler = ["wrangler", "deploy", "--dry-run", "--outdir", folder];
    await promisify(execFile)("npx", wrangler, { env: { ...process.env, WRANGLER_SEND_METRICS: "false" } });
    const css = (await readdir(folder)).find((file) => file.endsWith("-page.css"));
    expect(await readFile(join(folder, css!), "utf8")).toBe(await readFile("worker/page/page.css", "utf8"));
    expect(await readFile(join(folder, "index.js"), "utf8")).toContain("standard-webhooks");
  } finally {
    await rm(folder, { recursive: true });
  }
});
