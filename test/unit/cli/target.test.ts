import { expect, test } from "vitest";
import { keyOptions, parseLine } from "../../../src/cli/options.ts";
import { keyTarget } from "../../../src/cli/target.ts";
import { keyOf, providerOf, vectors } from "../webhooks/vectors.ts";

/** The key that a command line names. */
function target(line: string, variables: Record<string, string> = {}) {
  const { values } = parseLine(line.split(" "), keyOptions);
  return keyTarget({ values, access: { places: [], variables } });
}

test.each<[line: string, options: object]>([
  ["--key k", { kind: "run" }],
  ["--key k --scope a --scope b", { kind: "run", scope: ["a", "b"] }],
  ["--key k --scope a --scope-list", { kind: "run", scope: ["a"] }],
  ["--key k --scope a --flight", { kind: "flight", scope: "a" }],
  ["--key k --http --handler pay", { kind: "http", handler: "pay" }],
])("%s is the key of %j", async (line, options) => {
  expect(await target(line)).toMatchObject({ key: "k", options });
});

test.each(vectors.map((vector) => [vector.sender, vector] as const))(
  "finds the tag that %s puts into the scope",
  async (_, vector) => {
    const provider = providerOf(vector);
    const { url, headers } = vector;
    const request = new Request(url, { method: "POST", headers });
    const { secretTags, scope = [] } = await provider.verify(request, new TextEncoder().encode(vector.body));
    const line = `--key k --webhook ${provider.name} --secret-env SECRET`;
    const all = [line, ...scope.map((name) => `--scope ${name}`)].join(" ");
    const found = await target(all, { SECRET: keyOf(vector)[1] });
    expect(found.options).toEqual({ kind: "http", scope: [provider.name, ...secretTags!, ...scope] });
  },
);
