import { createHash, createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { sign, verify as vendorVerifies } from "@octokit/webhooks-methods";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { isRedlockError } from "../../../src/errors.ts";
import { github, type WebhookProvider, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";

// Required, not imported: the type of a literal of 4 MB would be inferred each time.
const examples = createRequire(import.meta.url)("@octokit/webhooks-examples") as {
  readonly name: string;
  readonly examples: readonly unknown[];
}[];

const secret = "It's a Secret to Everybody";
const delivery = "72d3162e-cc78-11e3-81ab-4c9367dc0958";
const bytes = (text: string) => new TextEncoder().encode(text);
const hex = (key: string, body: string | Uint8Array) => createHmac("sha256", key).update(body).digest("hex");

function request(headers: Record<string, string>): Request {
  return new Request("https://example.com/github", { method: "POST", headers });
}

function signed(signature: string, id = delivery): Request {
  return request({ "X-Hub-Signature-256": signature, "X-GitHub-Delivery": id });
}

async function refusal(provider: WebhookProvider, from: Request, body: Uint8Array<ArrayBuffer>) {
  const error = await provider.verify(from, body).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(WebhookVerificationError);
  return error as WebhookVerificationError;
}

describe("github", () => {
  it("accepts GitHub's own documented example", async () => {
    const signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    const verified = await github({ secret }).verify(signed(signature), bytes("Hello, World!"));
    expect(verified).toMatchObject({ deliveryId: delivery, idSigned: true });
    expect(verified.id).toBe(createHash("sha256").update("Hello, World!").digest("hex"));
  });

  it("accepts every example payload of GitHub as the vendor's package signs it", async () => {
    const provider = github({ secret });
    let count = 0;
    for (const event of examples) {
      for (const example of event.examples) {
        const body = JSON.stringify(example);
        await provider.verify(signed(await sign(secret, body)), bytes(body));
        count++;
      }
    }
    expect(count).toBeGreaterThan(100);
  });

  it("accepts and refuses what the vendor's package accepts and refuses, for changed bodies and signatures", async () => {
    const provider = github({ secret });
    const seen = { accepted: 0, refused: 0 };
    const change = fc.record({
      part: fc.constantFrom("body", "signature"),
      at: fc.nat(200),
      remove: fc.nat(2),
      insert: fc.string({ unit: "binary-ascii", maxLength: 2 }),
    });
    const mutated = (
      text: string,
      { at, remove, insert }: { at: number; remove: number; insert: string },
    ) => {
      const from = at % (text.length + 1);
      return text.slice(0, from) + insert + text.slice(from + remove);
    };
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: "grapheme", minLength: 1 }), change, async (original, how) => {
        const genuine = await sign(secret, original);
        const body = how.part === "body" ? mutated(original, how) : original;
        const signature = how.part === "signature" ? mutated(genuine, how) : genuine;
        // Without texts that HTTP cannot carry, or that the vendor's function treats as misuse.
        fc.pre(!/\p{Cs}/u.test(body) && body !== "" && !/[\0\r\n]/.test(signature));
        const from = signed(signature);
        const carried = from.headers.get("x-hub-signature-256");
        fc.pre(carried !== null && carried !== "");
        const theirs = await vendorVerifies(secret, body, carried);
        const ours = await provider.verify(from, bytes(body)).then(
          () => true,
          (error: unknown) => {
            expect(error).toBeInstanceOf(WebhookVerificationError);
            return false;
          },
        );
        seen[ours ? "accepted" : "refused"]++;
        expect(ours).toBe(theirs);
      }),
      seeded(500),
    );
    expect(seen.accepted).toBeGreaterThan(0);
    expect(seen.refused).toBeGreaterThan(0);
  });

  it.each([
    ["empty", new Uint8Array()],
    ["UTF-8", bytes('{"title":"Zażółć 🔒 jaźń"}')],
    ["binary", Uint8Array.from({ length: 256 }, (_, index) => index)],
    ["not valid UTF-8", Uint8Array.of(0xff, 0xfe, 0x00, 0xc3)],
  ])("checks a body byte for byte: %s", async (_, body) => {
    const provider = github({ secret });
    const from = signed(`sha256=${hex(secret, body)}`);
    await expect(provider.verify(from, body)).resolves.toMatchObject({
      deliveryId: delivery,
      idSigned: true,
    });
    const longer = new Uint8Array(body.length + 1);
    longer.set(body);
    expect((await refusal(provider, from, longer)).reason).toBe("bad-signature");
  });

  it("accepts each of several secrets while one is being rotated, and no other", async () => {
    const provider = github({ secret: ["new secret", "old secret"] });
    const body = bytes("{}");
    for (const key of ["new secret", "old secret"]) {
      await expect(provider.verify(signed(`sha256=${hex(key, "{}")}`), body)).resolves.toBeDefined();
    }
    const other = await refusal(provider, signed(`sha256=${hex("older secret", "{}")}`), body);
    expect(other.reason).toBe("bad-signature");
  });

  it("imports the keys once, with the first delivery", async () => {
    const importKey = vi.spyOn(crypto.subtle, "importKey");
    try {
      const provider = github({ secret: ["one", "two"], name: "hook" });
      expect(importKey).not.toHaveBeenCalled();
      const from = signed(`sha256=${hex("two", "{}")}`);
      await provider.verify(from, bytes("{}"));
      await provider.verify(from, bytes("{}"));
      expect(importKey).toHaveBeenCalledTimes(2);
    } finally {
      importKey.mockRestore();
    }
  });

  it("does not read the request's body", async () => {
    const from = new Request("https://example.com", {
      method: "POST",
      body: "{}",
      headers: { "x-hub-signature-256": `sha256=${hex(secret, "{}")}`, "x-github-delivery": delivery },
    });
    await github({ secret }).verify(from, bytes("{}"));
    expect(from.bodyUsed).toBe(false);
  });

  const good = hex(secret, "{}");
  it.each([
    ["no signature", { "x-github-delivery": delivery }, "missing-header"],
    ["no id", { "x-hub-signature-256": `sha256=${good}` }, "missing-header"],
    [
      "only the SHA-1 signature",
      { "x-hub-signature": `sha1=${good.slice(0, 40)}`, "x-github-delivery": delivery },
      "missing-header",
    ],
    ["empty", { "x-hub-signature-256": "", "x-github-delivery": delivery }, "missing-header"],
    ["no algorithm", { "x-hub-signature-256": good, "x-github-delivery": delivery }, "malformed-header"],
    [
      "another algorithm",
      { "x-hub-signature-256": `sha1=${good}`, "x-github-delivery": delivery },
      "malformed-header",
    ],
    [
      "upper case",
      { "x-hub-signature-256": `sha256=${good.toUpperCase()}`, "x-github-delivery": delivery },
      "malformed-header",
    ],
    [
      "an odd number of digits",
      { "x-hub-signature-256": `sha256=${good.slice(1)}`, "x-github-delivery": delivery },
      "malformed-header",
    ],
    [
      "a short signature",
      { "x-hub-signature-256": `sha256=${good.slice(2)}`, "x-github-delivery": delivery },
      "malformed-header",
    ],
    [
      "a long signature",
      { "x-hub-signature-256": `sha256=${good}00`, "x-github-delivery": delivery },
      "malformed-header",
    ],
    [
      "not ASCII",
      { "x-hub-signature-256": `sha256=${good.slice(1)}é`, "x-github-delivery": delivery },
      "malformed-header",
    ],
    [
      "an id beyond 255 characters",
      { "x-hub-signature-256": `sha256=${good}`, "x-github-delivery": "a".repeat(256) },
      "malformed-header",
    ],
    [
      "an id that is not ASCII",
      { "x-hub-signature-256": `sha256=${good}`, "x-github-delivery": "idé" },
      "malformed-header",
    ],
    ["two ids", { "x-hub-signature-256": `sha256=${good}`, "x-github-delivery": "a, b" }, "malformed-header"],
    [
      "another body's signature",
      { "x-hub-signature-256": `sha256=${hex(secret, "[]")}`, "x-github-delivery": delivery },
      "bad-signature",
    ],
  ] as const)("refuses: %s", async (_, headers, reason) => {
    expect((await refusal(github({ secret, id: "header" }), request(headers), bytes("{}"))).reason).toBe(
      reason,
    );
  });

  it("accepts an id of 255 characters", async () => {
    const id = "~".repeat(255);
    const verified = await github({ secret, id: "header" }).verify(signed(`sha256=${good}`, id), bytes("{}"));
    expect(verified).toMatchObject({ id, deliveryId: id, idSigned: false });
  });

  it("has neither the secret, nor the expected signature, nor what was sent in its errors", async () => {
    const body = '{"card":"4242424242424242"}';
    const wrong = hex("guess", body);
    const error = await refusal(github({ secret }), signed(`sha256=${wrong}`), bytes(body));
    const said = JSON.stringify({ ...error, message: error.message, stack: error.stack });
    for (const private_ of [secret, hex(secret, body), wrong, "4242424242424242"]) {
      expect(said).not.toContain(private_);
    }
    expect(isRedlockError(error)).toBe(true);
    expect(error).toMatchObject({
      name: "WebhookVerificationError",
      code: "WEBHOOK_INVALID",
      provider: "github",
    });
  });

  it.each([
    ["an empty secret", ""],
    ["no secrets", []],
    ["an empty secret among others", ["fine", ""]],
    ["a variable that is not set", undefined],
    ["a number", 42],
    ["a list with something else", ["fine", null]],
  ])("throws a TypeError at once for %s", (_, value) => {
    expect(() => github({ secret: value as string })).toThrow(TypeError);
  });

  it("throws a TypeError for a body that is not bytes", async () => {
    const text = "{}" as unknown as Uint8Array<ArrayBuffer>;
    await expect(github({ secret }).verify(signed(`sha256=${good}`), text)).rejects.toThrow(
      new TypeError("body must be the request's bytes as a Uint8Array, not string"),
    );
  });

  it("accepts a name, which must not be empty", () => {
    expect(github({ secret }).name).toBe("github");
    expect(github({ secret, name: undefined }).name).toBe("github");
    expect(github({ secret, name: "github-billing" }).name).toBe("github-billing");
    expect(() => github({ secret, name: "" })).toThrow(TypeError);
  });
});
