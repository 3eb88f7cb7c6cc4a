import { describe, expect, it } from "vitest";
import { type StandardWebhooksOptions, standardWebhooks } from "../../../src/webhooks/index.ts";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

describe("standardWebhooks at set-up", () => {
  const key = (length: number) => `whsec_${Buffer.alloc(length, 1).toString("base64")}`;

  it.each([24, 25, 26, 32, 64])(
    "accepts a secret of %i bytes, with and without prefix and padding",
    (length) => {
      for (const text of [key(length), key(length).slice(6), key(length).replace(/=+$/, "")]) {
        expect(() => standardWebhooks({ secret: text })).not.toThrow();
      }
    },
  );

  it.each([
    ["nothing", {}],
    ["nothing behind whsec_", { secret: "whsec_" }],
    ["what is not base64", { secret: "whsec_not*base64*not*base64*not*base64" }],
    ["a line's end behind the secret", { secret: `${secret}\n` }],
    ["a short secret", { secret: key(23) }],
    ["a long secret", { secret: key(65) }],
    ["a bad secret among good ones", { secret: [secret, "whsec_short"] }],
    ["a private key", { secret: `whsk_${Buffer.alloc(64, 1).toString("base64")}` }],
    ["a public key as secret", { secret: `whpk_${Buffer.alloc(32, 1).toString("base64")}` }],
    ["a short one beside a secret", { secret, publicKey: "whpk_AA==" }],
    ["a short public key", { publicKey: `whpk_${Buffer.alloc(31, 1).toString("base64")}` }],
    ["a secret as public key", { publicKey: key(32) }],
    ["an empty public key beside a secret", { secret, publicKey: "" }],
    ["an empty prefix of headers", { secret, headerPrefix: "" }],
    ["no prefixes of headers", { secret, headerPrefix: [] }],
    ["a prefix with its dash", { secret, headerPrefix: "webhook-" }],
  ])("throws a TypeError for %s", (_, options: StandardWebhooksOptions) => {
    expect(() => standardWebhooks(options)).toThrow(TypeError);
    const named = Object.keys(options).at(-1) ?? "secret or publicKey";
    expect(() => standardWebhooks(options)).toThrow(new RegExp(`^${named} `));
  });

  it.each(["whsec_dG9vIHNob3J0", "whsec_dG9vIHNob3J0*"])(
    "does not repeat a secret that it refuses",
    (text) => {
      const set = () => standardWebhooks({ secret: text });
      expect(set).toThrow(/24 to 64 bytes|must be base64/);
      expect(set).not.toThrow(/dG9vIHNob3J0/);
    },
  );
});
