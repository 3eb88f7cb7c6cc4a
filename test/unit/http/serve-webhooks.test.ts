import { describe, expect, test } from "vitest";
import { QuorumError } from "../../../src/errors.ts";
import { completeText } from "../../../src/idempotency/record.ts";
import { type WebhookProvider, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { freshKey } from "../../support/fresh-key.ts";
import { outcomeOf } from "../../support/outcomes.ts";
import { recordName, recordsOf } from "../../support/stores.ts";
import { providerOf, requestOf, route, store, text, types } from "./stand.ts";

// How the delivery of a webhook is answered: which key it has, and what its sender and the operator get to know.

describe("a webhook", () => {
  test("is the key that its provider returns, in the provider's scope", async () => {
    const { answer } = route({}, true);
    const id = freshKey();
    const provider = providerOf({ id, scope: ["shop"] });
    let seen: unknown[] = [];
    const verify: WebhookProvider["verify"] = (...args) => {
      seen = args;
      return provider.verify(...args);
    };
    // The header of other requests means nothing here.
    const request = requestOf(freshKey());
    await answer(request, {
      provider: { ...provider, verify },
      admitted: async () => ({ scope: "tenant" }),
    });
    expect(seen).toEqual([request, text("body")]);
    const records = await recordsOf(store, id, ["acme", "shop", "tenant"], "http");
    expect(records).toEqual(new Array(3).fill(expect.stringMatching(/^C1 /)));
  });

  test("runs once per key in the scope of each secret, which are in one order everywhere", async () => {
    const { answer, events, runs, links } = route({}, true);
    const id = freshKey();
    const tagged = (...secretTags: string[]) => ({
      provider: providerOf({ id, secretTags }),
      admitted: async () => ({ scope: ["tenant"] }),
    });
    expect((await answer(requestOf(null), tagged("b", "a", "b"))).status).toBe("executed");
    const first = await recordName(id, ["acme", "a", "tenant"], "http");
    expect(links[0]!.sent[0]).toContain(first);
    for (const tag of ["a", "b"]) {
      const records = await recordsOf(store, id, ["acme", tag, "tenant"], "http");
      expect(records).toEqual(new Array(3).fill(expect.stringMatching(/^C1 /)));
      expect((await answer(requestOf(null), tagged(tag))).status).toBe("replayed");
    }
    expect((await answer(requestOf(null), tagged("c"))).status).toBe("executed");
    expect(runs()).toBe(2);
    // One for each request, whatever the number of secrets.
    expect(types(events)).toEqual(["executed", "replayed", "replayed", "executed"]);
  });

  test.each([
    ["bad-signature", 401],
    ["malformed-header", 400],
  ] as const)("that is not genuine (%s) is %i, and the operator gets the error", async (reason, status) => {
    const { answer, events, links } = route({}, true);
    const error = new WebhookVerificationError("acme", reason, "why");
    const provider = { name: "acme", verify: () => Promise.reject(error) };
    const refused = await answer(requestOf(null), { provider });
    expect([refused.status, refused.response.status]).toEqual(["refused", status]);
    expect(events).toEqual([{ type: "refused", status, code: "WEBHOOK_INVALID", key: undefined, error }]);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });

  test.each([new Error("the provider's own"), new QuorumError("read", ["r"], [])])(
    "whose provider fails in another way is not answered: %s",
    async (error) => {
      const { answer } = route({}, true);
      const provider = { name: "acme", verify: () => Promise.reject(error) };
      expect((await outcomeOf(answer(requestOf(null), { provider }))).error).toBe(error);
    },
  );

  test.each([true, false])("that was handled, without a stored response: webhook %s", async (webhook) => {
    const { answer } = route({ wait: 0 }, webhook);
    const key = freshKey();
    const scope = webhook ? ["acme"] : [];
    const fields = { token: "t", completedAt: Date.now(), fingerprint: "-", unstored: "too-large" } as const;
    const name = await recordName(key, scope, "http");
    for (let index = 0; index < 3; index += 1) {
      await store.execute(index, ["SET", name, completeText(fields)]);
    }
    const provider = webhook ? providerOf({ id: key }) : undefined;
    const { status, response } = await answer(requestOf(key), { provider });
    expect([status, response.status]).toEqual(webhook ? ["replayed", 200] : ["refused", 410]);
    if (webhook) expect(await response.text()).toBe("");
  });
});
