import { chmod, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writeVariables } from "../../src/cli/env-file.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "redlock-edge-env-"));
  path = join(folder, ".env");
});
afterEach(() => rm(folder, { recursive: true }));

const variables = [["UPSTASH_REDIS_REST_URL_1", "http://127.0.0.1:8079"]] as const;
const written = 'UPSTASH_REDIS_REST_URL_1="http://127.0.0.1:8079"\n';

test.each([
  ["an empty file", "", written],
  ["a comment", "# mine\n", `# mine\n${written}`],
  ["no newline at the end", "A=1", `A=1\n${written}`],
  ["any form", "UPSTASH_REDIS_REST_URL=http://[::1]:1\r\n export UPSTASH_REDIS_REST_TOKEN_7=x", written],
  ["names that are none", "UPSTASH_REDIS_REST_URL_EU=x\n", `UPSTASH_REDIS_REST_URL_EU=x\n${written}`],
  ["several lines in quotes", 'K="-----BEGIN\nA\nEND"\nA=1\n', `K="-----BEGIN\nA\nEND"\nA=1\n${written}`],
  ["an endpoint at the address that is written", "UPSTASH_REDIS_REST_URL=http://127.0.0.1:1\n", written],
])("replaces the endpoints of a file with %s, and keeps the rest", async (_, before, after) => {
  await writeFile(path, before);
  await writeVariables(path, variables);
  expect(await readFile(path, "utf8")).toBe(after);
});

test.each([
  ["JSON", '{\n  "name": "app"\n}\n', /it is not a file of variables/],
  ["an endpoint elsewhere", "UPSTASH_REDIS_REST_URL_7='https://prod.upstash.io'\n", /URL_7 points to a host/],
  ["a host that is named like this one", "UPSTASH_REDIS_REST_URL=http://127.example\n", /not this machine/],
  ["an endpoint that a shell knows", "UPSTASH_REDIS_REST_URL=$PRODUCTION\n", /URL points to a host/],
])("refuses %s, and leaves it as it was", async (_, text, reason) => {
  await writeFile(path, text);
  const error = await writeVariables(path, variables).catch((thrown: Error) => thrown);
  expect(error).toMatchObject({ name: "UsageError", message: expect.stringMatching(reason) });
  expect(await readFile(path, "utf8")).toBe(text);
});

test("a path that cannot be written is named", async () => {
  await expect(writeVariables(folder, variables)).rejects.toThrow(/^--write-env .*EISDIR/);
  await expect(writeVariables(join(folder, "a", "b"), variables)).rejects.toThrow(/^--write-env .*ENOENT/);
});

test("what it has written is its owner's, through a symbolic link as well", async () => {
  const shared = join(folder, "shared.env");
  await symlink(shared, path);
  for (const mode of [0o644, 0o600]) {
    await writeVariables(path, variables);
    expect(await readFile(shared, "utf8")).toBe(written);
    expect((await stat(shared)).mode & 0o777).toBe(0o600);
    await chmod(shared, mode);
  }
});
