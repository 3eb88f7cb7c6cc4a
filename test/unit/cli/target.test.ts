import { describe, expect, test } from "vitest";
import { parseLine, UsageError } from "../../../src/cli/command.ts";
import { kindOf } from "../../../src/cli/kinds.ts";
import { scopeOptions, scopeWords, targetOf } from "../../../src/cli/target.ts";
import { secretTag } from "../../../src/webhooks/index.ts";
import { at, url } from "../webhooks/sender.ts";
import { senders } from "../webhooks/senders.ts";

const options = { ...scopeOptions, key: { type: "string" } } as const;
const variables = { SECRET: "whsec_1", EMPTY: "" };

function parse(line: string) {
  const { values, positionals } = parseLine(line.split(" ").filter(Boolean), options);
  return { target: targetOf(values, positionals, variables), words: scopeWords(values) };
}

describe("targetOf", () => {
  test.each([
    ["--key k", { key: "k", options: { kind: "run" } }],
    ["--key k --scope a", { key: "k", options: { kind: "run", scope: "a" } }],
    ["--key k --scope a --scope b", { key: "k", options: { kind: "run", scope: ["a", "b"] } }],
    ["--key k --scope a --scope-list", { key: "k", options: { kind: "run", scope: ["a"] } }],
    ["--key k --http --scope a", { key: "k", options: { kind: "http", scope: "a" } }],
    ["--key k --flight --scope a", { key: "k", options: { kind: "flight", scope: "a" } }],
    ["--key k --webhook github", { key: "k", options: { kind: "http", scope: ["github"] } }],
    ["--key k --webhook github --scope a", { key: "k", options: { kind: "http", scope: ["github", "a"] } }],
  ])("finds the key of '%s'", async (line, target) => {
    const parsed = parse(line);
    expect(await parsed.target).toEqual(target);
    // The words name the same key again.
    expect(await parse(`--key k ${parsed.words}`).target).toEqual(target);
  });

  test("finds a resource", async () => {
    expect(await parse("invoice:42").target).toEqual({ resource: "invoice:42" });
  });

  test("puts the tag of a webhook's secret into the scope, and never prints the secret", async () => {
    const parsed = parse("--key k --webhook stripe --secret-env SECRET --scope a");
    const scope = ["stripe", await secretTag("whsec_1"), "a"];
    expect(await parsed.target).toEqual({ key: "k", options: { kind: "http", scope } });
    expect(parsed.words).toBe(" --scope a --webhook stripe --secret-env SECRET");
  });

  test.each(Object.entries(senders))("finds the tag that %s puts into the scope", async (_, sender) => {
    const [secret] = sender.secrets;
    const { headers, body } = sender.sign(secret);
    const provider = sender.make(secret, { now: () => at });
    const { secretTags } = await provider.verify(new Request(url, { method: "POST", headers }), body);
    const values = { key: "k", webhook: provider.name, "secret-env": "SECRET" };
    const options = { kind: "http", scope: [provider.name, ...secretTags!] };
    expect(await targetOf(values, [], { SECRET: secret })).toEqual({ key: "k", options });
  });

  test.each([
    ["", "a resource, or --key, is missing"],
    ["a b", "unexpected argument 'b'"],
    ["a --key k", "not both"],
    ["a --scope s", "--scope needs --key"],
    ["--key=", "the key is missing"],
    ["--key k --scope=", "must not be empty"],
    ["--key k --scope-list", "--scope-list needs --scope"],
    ["--key k --secret-env SECRET", "--secret-env needs --webhook"],
    ["--key k --webhook w --secret-env EMPTY", "name of a variable"],
    ["--key k --webhook w --secret-env whsec_1", "name of a variable"],
  ])("refuses '%s'", async (line, message) => {
    const failure = await Promise.resolve()
      .then(() => parse(line).target)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UsageError);
    expect((failure as Error).message).toContain(message);
    expect((failure as Error).message).not.toContain("whsec_1");
  });
});

test.each([
  ["Semaphore", "Semaphore"],
  ["semaphore", "Semaphore"],
  ["read-write-lock", "ReadWriteLock"],
  ["ONCE", "once"],
])("kindOf(%s) is %s", (word, kind) => {
  expect(kindOf(word)).toBe(kind);
  expect(() => kindOf("lock")).toThrow(UsageError);
});
