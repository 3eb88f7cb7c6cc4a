import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// What npm gets from `npm publish` where package.json has a repository, and where it has none.

const run = promisify(execFile);
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "redlock-edge-publish-"));
  const made = /^(node_modules|dist|\..*)$/;
  cpSync(".", folder, { recursive: true, filter: (path) => path === "." || !made.test(basename(path)) });
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Publishes a package of the copy to a registry of its own, and returns a reader of the tarball's files. */
async function publish(...workspace: string[]): Promise<(file: string) => Promise<string>> {
  const tarballs: Buffer[] = [];
  const registry = createServer(async (request, response) => {
    if (request.method !== "PUT") return response.writeHead(404).end("{}");
    const body = Buffer.concat(await request.toArray()).toString();
    const [attachment] = Object.values<{ data: string }>(JSON.parse(body)._attachments);
    tarballs.push(Buffer.from(attachment!.data, "base64"));
    return response.writeHead(201).end("{}");
  });
  await new Promise<void>((done) => registry.listen(0, "127.0.0.1", done));
  const host = `//127.0.0.1:${(registry.address() as AddressInfo).port}/`;
  const settings = [`--registry=http:${host}`, `--${host}:_authToken=none`];
  try {
    await run("npm", ["publish", ...settings, ...workspace], { cwd: folder });
  } finally {
    registry.close();
  }
  const tarball = join(folder, "published.tgz");
  writeFileSync(tarball, tarballs[0]!);
  return async (file) => (await run("tar", ["-xzOf", tarball, `package/${file}`])).stdout;
}

const textOf = (file: string) => readFileSync(join(folder, file), "utf8");
const relativeLinks = (markdown: string) =>
  markdown.replace(/^```[\s\S]*?^```$/gm, "").match(/\]\((?!https?:|#)[^)]+\)/g) ?? [];

describe("npm publish", () => {
  it("without a repository leaves links as they are", async () => {
    const published = await publish();
    expect(await published("README.md")).toBe(textOf("README.md"));
    expect(await published("dist/redlock.d.ts")).toContain("`docs/internals/algorithm.md` has");
  });

  it("with a repository makes links of READMEs and docstrings whole, and leaves README.md as it was", async () => {
    const manifest = JSON.parse(textOf("package.json"));
    manifest.repository = { type: "git", url: "git+https://git.example/owner/name.git" };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    const address = "https://git.example/owner/name";

    const before = textOf("README.md");
    expect(relativeLinks(before).length).toBeGreaterThan(10);
    const published = await publish();
    const readme = await published("README.md");
    expect(relativeLinks(readme)).toEqual([]);
    expect(readme).toContain(`](${address}/blob/v${manifest.version}/docs/safety.md)`);
    expect(readme).toContain(`](${address}/raw/v${manifest.version}/docs/images/twice.svg)`);
    expect(await published("dist/redlock.d.ts")).toContain(
      ` ${address}/blob/v${manifest.version}/docs/internals/algorithm.md has`,
    );
    expect(textOf("README.md")).toBe(before);

    const local = await (await publish("--workspace", "redis-rest-local"))("README.md");
    expect(relativeLinks(local)).toEqual([]);
    expect(local).toContain(`](${address}/blob/v${manifest.version}/local/docs/reference.md)`);
  });
});
