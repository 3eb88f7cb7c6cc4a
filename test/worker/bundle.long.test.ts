import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("what wrangler would deploy has the page's files, and none of the buttons of `npm run dev`", async () => {
  const folder = await mkdtemp(join(tmpdir(), "redlock-edge-bundle-"));
  try {
    const wrangler = ["wrangler", "deploy", "--dry-run", "--outdir", folder];
    await promisify(execFile)("npx", wrangler, { env: { ...process.env, WRANGLER_SEND_METRICS: "false" } });
    const files = await readdir(folder);
    for (const name of ["page.css", "live.client.js"]) {
      const [bundled] = files.filter((file) => file.endsWith(`-${name}`));
      expect(await readFile(join(folder, bundled!), "utf8")).toBe(
        await readFile(`worker/page/${name}`, "utf8"),
      );
    }
    const code = await readFile(join(folder, "index.js"), "utf8");
    expect(code).toContain("/webhooks/stripe");
    expect(code).not.toMatch(/\/samples|send-signed|evt_sample/);
  } finally {
    await rm(folder, { recursive: true });
  }
});
