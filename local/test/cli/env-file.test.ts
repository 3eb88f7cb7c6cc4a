import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isUnignored, withVariables, writeVariables } from "../../src/cli/env-file.ts";

test("withVariables() replaces all variables of endpoints, in any form, and keeps every other line", () => {
  const before = [
    "A=1",
    "",
    'UPSTASH_REDIS_REST_URL="http://old"',
    "export UPSTASH_REDIS_REST_TOKEN_7=old",
    "UPSTASH_REDIS_REST_URL_EU=http://kept",
    "# UPSTASH_REDIS_REST_URL_1=http://kept",
    "",
    "",
  ].join("\n");
  expect(withVariables(before, [["UPSTASH_REDIS_REST_URL_1", "http://new"]])).toBe(
    [
      "A=1",
      "",
      "UPSTASH_REDIS_REST_URL_EU=http://kept",
      "# UPSTASH_REDIS_REST_URL_1=http://kept",
      'UPSTASH_REDIS_REST_URL_1="http://new"',
      "",
    ].join("\n"),
  );
  expect(withVariables("", [["A", "b"]])).toBe('A="b"\n');
});

test.each([
  ["no newline at the end", "A=1", 'A=1\nUPSTASH_REDIS_REST_URL="u"\n'],
  ["CRLF", "A=1\r\nUPSTASH_REDIS_REST_URL=old\r\n", 'A=1\r\nUPSTASH_REDIS_REST_URL="u"\r\n'],
  ["export", "export UPSTASH_REDIS_REST_URL=old\n", 'export UPSTASH_REDIS_REST_URL="u"\n'],
  [
    "several lines in quotes",
    'K="-----BEGIN\nUPSTASH_REDIS_REST_URL=kept\nEND" # key\nUPSTASH_REDIS_REST_URL="a\nb"\nZ=1\n',
    'K="-----BEGIN\nUPSTASH_REDIS_REST_URL=kept\nEND" # key\nZ=1\nUPSTASH_REDIS_REST_URL="u"\n',
  ],
  ["a quote that is not closed", 'A="b\nUPSTASH_REDIS_REST_URL=old\n', 'A="b\nUPSTASH_REDIS_REST_URL="u"\n'],
])("withVariables() keeps the form of a file with %s", (_, before, after) => {
  expect(withVariables(before, [["UPSTASH_REDIS_REST_URL", "u"]])).toBe(after);
});

describe("writeVariables()", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "redlock-edge-env-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const variables = [["UPSTASH_REDIS_REST_TOKEN", "secret"]] as const;
  const written = 'UPSTASH_REDIS_REST_TOKEN="secret"\n';

  test.each([
    ["JSON", '{\n  "name": "app"\n}\n', "line 1 is neither"],
    ["TOML", '# a comment\nname = "app"\n\n[vars]\n', "line 4 is neither"],
    ["a program after a long value", 'A="1\n2"\nrun()\n', "line 3 is neither"],
    ["a binary file", Buffer.from([0xff, 0xfe, 65, 0]), "not UTF-8"],
  ])("refuses %s, and leaves it as it was", async (_, text, reason) => {
    const path = join(folder, "file");
    await writeFile(path, text);
    await chmod(path, 0o644);
    const error = await writeVariables(path, variables).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ name: "UsageError" });
    expect((error as Error).message).toMatch(
      new RegExp(`^--write-env ${path}: .*${reason}.*left as it is; name another file`),
    );
    expect(await readFile(path)).toEqual(Buffer.from(text));
    expect((await stat(path)).mode & 0o777).toBe(0o644);
  });

  test.each(["https://prod.upstash.io", "http://127.upstash.example", "http://8.8.8.8:8079", "$PRODUCTION"])(
    "refuses to replace an endpoint at %s",
    async (url) => {
      const path = join(folder, "file");
      const text = `UPSTASH_REDIS_REST_URL_7='${url}'\nUPSTASH_REDIS_REST_TOKEN_7=t\nUPSTASH_REDIS_REST_URL_7=http://127.0.0.1\n`;
      await writeFile(path, text);
      await expect(writeVariables(path, variables)).rejects.toMatchObject({
        name: "UsageError",
        message: expect.stringMatching(/UPSTASH_REDIS_REST_URL_7 .*not this machine.*name another file/),
      });
      expect(await readFile(path, "utf8")).toBe(text);
    },
  );

  test.each([
    "",
    "http://localhost:8079",
    "http://[::1]:8079",
    "http://192.168.1.2:8079",
    "http://[fd00::1]",
  ])("replaces an endpoint at %o, and one at the address that is written", async (url) => {
    const path = join(folder, "file");
    await writeFile(path, `UPSTASH_REDIS_REST_URL_1=${url}\nUPSTASH_REDIS_REST_URL=http://8.8.8.8:1\n`);
    await writeVariables(path, [["UPSTASH_REDIS_REST_URL_1", "http://8.8.8.8:2"]]);
    expect(await readFile(path, "utf8")).toBe('UPSTASH_REDIS_REST_URL_1="http://8.8.8.8:2"\n');
  });

  test("refuses a file that is read-only, and keeps its mode", async () => {
    const path = join(folder, "file");
    await writeFile(path, "A=1\n");
    await chmod(path, 0o444);
    await expect(writeVariables(path, variables)).rejects.toMatchObject({
      name: "UsageError",
      message: expect.stringContaining("it is read-only"),
    });
    expect([await readFile(path, "utf8"), (await stat(path)).mode & 0o777]).toEqual(["A=1\n", 0o444]);
  });

  test("names what is wrong with a path, and what to do", async () => {
    const failure = (path: string) => writeVariables(path, variables).catch(({ message }: Error) => message);
    expect(await failure(folder)).toContain("it is a folder: name a file in it");
    expect(await failure(join(folder, "none", "file"))).toContain("no such folder");
    execFileSync("mkfifo", [join(folder, "pipe")]);
    expect(await failure(join(folder, "pipe"))).toContain("not a regular file");
  });

  test("writes through a symbolic link, and what it has written is its owner's", async () => {
    const [path, link] = [join(folder, "shared.env"), join(folder, ".env")];
    await symlink(path, link);
    await writeVariables(link, variables);
    expect(await readFile(path, "utf8")).toBe(written);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await chmod(path, 0o644);
    await writeVariables(link, variables);
    expect(await readFile(path, "utf8")).toBe(written);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
});

test("isUnignored() asks git, and is false where there is no repository", async () => {
  const folder = await mkdtemp(join(tmpdir(), "redlock-edge-git-"));
  expect(await isUnignored(join(folder, ".dev.vars"))).toBe(false);
  execFileSync("git", ["init", "--quiet"], { cwd: folder });
  await mkdir(join(folder, "app"));
  await writeFile(join(folder, ".gitignore"), ".dev.vars\n");
  expect(await isUnignored(join(folder, "app", ".dev.vars"))).toBe(false);
  expect(await isUnignored(join(folder, "app", ".env"))).toBe(true);
  await rm(folder, { recursive: true });
});
