import { createHmac } from "node:crypto";
import { sign, verify as vendorVerifies } from "@octokit/webhooks-methods";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { github, type WebhookProvider, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { seeded } from "../../support/seeded.ts";

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
      seeded(200),
    );
    expect(seen.accepted).toBeGreaterThan(0);
    expect(seen.refused).toBeGreaterThan(0);
  });

  it("checks a body byte for byte, also one that is not UTF-8", async () => {
    const provider = github({ secret });
    for (const body of [new Uint8Array(), Uint8Array.of(0xff, 0xfe, 0x00, 0xc3)]) {
      const from = signed(`sha256=${hex(secret, body)}`);
      expect(await provider.verify(from, body)).toMatchObject({ deliveryId: delivery, idSigned: true });
      expect((await refusal(provider, from, Uint8Array.of(...body, 0))).reason).toBe("bad-signature");
    }
  });

  const good = hex(secret, "{}");
  it.each<[what: string, signature: string, id?: string]>([
    ["upper case", `sha256=${good.toUpperCase()}`],
    ["an odd number of digits", `sha256=${good.slice(1)}`],
    ["a short signature", `sha256=${good.slice(2)}`],
    ["a long signature", `sha256=${good}00`],
    ["a signature that is not ASCII", `sha256=${good.slice(1)}é`],
    ["an id beyond 255 characters", `sha256=${good}`, "a".repeat(256)],
    ["an id that is not ASCII", `sha256=${good}`, "idé"],
    ["two ids", `sha256=${good}`, "a, b"],
  ])("refuses: %s", async (_, signature, id) => {
    const by = github({ secret, id: "header" });
    expect((await refusal(by, signed(signature, id), bytes("{}"))).reason).toBe("malformed-header");
  });

  it("refuses a delivery with only the SHA-1 signature", async () => {
    const old = request({ "x-hub-signature": `sha1=${good.slice(0, 40)}`, "x-github-delivery": delivery });
    expect((await refusal(github({ secret }), old, bytes("{}"))).reason).toBe("missing-header");
  });

  it("accepts an id of 255 characters", async () => {
    const id = "~".repeat(255);
    const verified = await github({ secret, id: "header" }).verify(signed(`sha256=${good}`, id), bytes("{}"));
    expect(verified).toMatchObject({ id, deliveryId: id, idSigned: false });
  });
});
