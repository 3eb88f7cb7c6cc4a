import { expect, test } from "vitest";
import { options, type Values } from "../../../src/cli/options.ts";
import { keyTarget } from "../../../src/cli/target.ts";
import { keyOf, providerOf, vectors } from "../webhooks/vectors.ts";

/** The values of a command line that has these. */
const valuesOf = (given: Partial<Values>) =>
  ({
    ...Object.fromEntries(Object.entries(options).map(([name, option]) => [name, option.default])),
    ...given,
  }) as Values;

const target = (given: Partial<Values>, variables: Record<string, string> = {}) =>
  keyTarget({ values: valuesOf({ key: "k", ...given }), access: { places: [], variables } });

test.each<[Partial<Values>, options: object]>([
  [{}, { kind: "run" }],
  [{ scope: ["a", "b"] }, { kind: "run", scope: ["a", "b"] }],
  [
    { scope: ["a"], "scope-list": true },
    { kind: "run", scope: ["a"] },
  ],
  [
    { scope: ["a"], flight: true },
    { kind: "flight", scope: "a" },
  ],
  [
    { http: true, handler: "pay" },
    { kind: "http", handler: "pay" },
  ],
])("%j is the key of %j", async (given, found) => {
  expect(await target(given)).toMatchObject({ key: "k", options: found });
});

test.each(vectors.map((vector) => [vector.sender, vector] as const))(
  "finds the tag that %s puts into the scope",
  async (_, vector) => {
    const provider = providerOf(vector);
    const { url, headers } = vector;
    const request = new Request(url, { method: "POST", headers });
    const { secretTags, scope = [] } = await provider.verify(request, new TextEncoder().encode(vector.body));
    const given = { webhook: provider.name, "secret-env": "SECRET", scope: [...scope] };
    const found = await target(given, { SECRET: keyOf(vector)[1] });
    expect(found.options).toEqual({ kind: "http", scope: [provider.name, ...secretTags!, ...scope] });
  },
);
