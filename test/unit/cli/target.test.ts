import { afterEach, describe, expect, test } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
import { options, type Values } from "../../../src/cli/options.ts";
import { keyTarget } from "../../../src/cli/target.ts";
import { Idempotency, type KeyOptions } from "../../../src/idempotency/index.ts";
import { Redlock } from "../../../src/index.ts";
import { secretTag } from "../../../src/webhooks/index.ts";
import { patient } from "../../support/beyond-tests.ts";
import { keyOf, providerOf, vectors } from "../webhooks/vectors.ts";

/** The values of a command line that has these. */
const valuesOf = (given: Partial<Values>) =>
  ({
    ...Object.fromEntries(Object.entries(options).map(([name, option]) => [name, option.default])),
    ...given,
  }) as Values;

const endpoint = memoryEndpoint({ name: "e" });
const redlock = new Redlock({ ...patient, endpoints: [endpoint] });
afterEach(() => void endpoint.engine.execute(["FLUSHALL"]));

const target = (given: Partial<Values>, variables: Record<string, string> = {}) =>
  keyTarget({ values: valuesOf({ key: "k", ...given }), access: { places: [], variables } }, redlock);

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
    { webhook: "billing", scope: ["a"], handler: "/hook" },
    { kind: "http", scope: ["billing", "a"], handler: "/hook" },
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

describe("the record of a delivery", () => {
  const variables = { STRIPE_WEBHOOK_SECRET: "whsec_1", GITHUB_SECRET: "other", STRIPE_LOCALE: "de" };
  const run = (given: KeyOptions) =>
    new Idempotency(redlock).run("k", { kind: "http", ...given } as never, () => 1);
  const tagged = async () => ["stripe", await secretTag("whsec_1")];

  test("is found by the variable of its secret, and a usual route", async () => {
    const where = { scope: await tagged(), handler: "/webhooks/stripe" };
    await run(where);
    expect(await target({ webhook: "stripe" }, variables)).toMatchObject({
      options: where,
      found: "by --secret-env STRIPE_WEBHOOK_SECRET --handler /webhooks/stripe",
    });
  });

  test("is found by what is not given alone", async () => {
    await run({ scope: await tagged(), handler: "pay" });
    const found = await target({ webhook: "stripe", handler: "pay" }, variables);
    expect(found.found).toBe("by --secret-env STRIPE_WEBHOOK_SECRET");
    // The one that the options name comes first.
    for (const scope of [["stripe"], await tagged()]) await run({ scope, handler: "/hook" });
    expect(await target({ webhook: "stripe", handler: "/hook" }, variables)).not.toHaveProperty("found");
  });

  test("is not chosen where several routes have one", async () => {
    await run({ scope: await tagged(), handler: "/webhook" });
    await run({ scope: await tagged(), handler: "/webhooks" });
    await expect(target({ webhook: "stripe" }, variables)).rejects.toThrow(
      /^several records have this key; add: .* --handler \/webhooks, or: .* --handler \/webhook$/,
    );
  });

  test("is not said to be missing if the sender's secret is", async () => {
    await expect(target({ webhook: "lemon-squeezy" }, variables)).rejects.toThrow(
      /^to find a delivery from lemon-squeezy, its secret .* LEMON_SQUEEZY and SECRET in its name.* --secret-env$/,
    );
    await run({ scope: ["github"], handler: "/hook" });
    expect(await target({ webhook: "github", handler: "/hook" })).not.toHaveProperty("found");
  });

  test.each<[Partial<Values>, missing: RegExp]>([
    [{}, /--secret-env, .*; --handler, .*; --scope/],
    [{ "secret-env": "STRIPE_WEBHOOK_SECRET" }, /^Nor .* 7 likely names\..* check --handler, .*; --scope/],
    [{ "secret-env": "STRIPE_WEBHOOK_SECRET", handler: "h" }, /^If you expected one, check --scope/],
    [{ "secret-env": "STRIPE_WEBHOOK_SECRET", handler: "h", scope: ["a"] }, /compare the options/],
  ])("is missing with %j, and the options that are missing are named", async (given, missing) => {
    const { elsewhere } = await target({ webhook: "stripe", ...given }, variables);
    expect(elsewhere).toMatch(missing);
  });
});
