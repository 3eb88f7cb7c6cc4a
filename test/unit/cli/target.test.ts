import { expect, test } from "vitest";
import { options, type Values } from "../../../src/cli/options.ts";
import { targetOf } from "../../../src/cli/target.ts";
import { secretTag } from "../../../src/webhooks/index.ts";
import { keyOf, providerOf, vectors } from "../webhooks/vectors.ts";

/** The values of a command line that has these. */
const valuesOf = (given: Partial<Values>) =>
  ({
    ...Object.fromEntries(Object.entries(options).map(([name, option]) => [name, option.default])),
    ...given,
  }) as Values;

test.each<[Partial<Values>, options: object]>([
  [{}, { kind: "run" }],
  [{ scope: ["a"] }, { kind: "run", scope: "a" }],
  [{ scope: ["a", "b"] }, { kind: "run", scope: ["a", "b"] }],
  [
    { scope: ["a"], "scope-list": true },
    { kind: "run", scope: ["a"] },
  ],
  [
    { scope: ["a"], http: true },
    { kind: "http", scope: "a" },
  ],
  [
    { scope: ["a"], flight: true },
    { kind: "flight", scope: "a" },
  ],
  [{ webhook: "github" }, { kind: "http", scope: ["github"] }],
  [
    { webhook: "github", scope: ["a"], handler: "/hook" },
    { kind: "http", scope: ["github", "a"], handler: "/hook" },
  ],
  [
    { http: true, handler: "pay" },
    { kind: "http", handler: "pay" },
  ],
])("%j is the key of %j", async (given, found) => {
  expect(await targetOf("", valuesOf({ key: "k", ...given }), {})).toEqual({ key: "k", options: found });
});

test("puts the tag of a webhook's secret between the provider and what follows", async () => {
  const values = valuesOf({ key: "k", webhook: "stripe", "secret-env": "SECRET", scope: ["a"] });
  const scope = ["stripe", await secretTag("whsec_1"), "a"];
  const target = await targetOf("", values, { SECRET: "whsec_1" });
  expect(target).toEqual({ key: "k", options: { kind: "http", scope } });
});

test.each(vectors.map((vector) => [vector.sender, vector] as const))(
  "finds the tag that %s puts into the scope",
  async (_, vector) => {
    const provider = providerOf(vector);
    const { url, headers } = vector;
    const request = new Request(url, { method: "POST", headers });
    const { secretTags, scope = [] } = await provider.verify(request, new TextEncoder().encode(vector.body));
    const values = valuesOf({
      key: "k",
      webhook: provider.name,
      "secret-env": "SECRET",
      scope: [...scope],
    });
    const found = { kind: "http", scope: [provider.name, ...secretTags!, ...scope] };
    expect(await targetOf("", values, { SECRET: keyOf(vector)[1] })).toEqual({ key: "k", options: found });
  },
);
