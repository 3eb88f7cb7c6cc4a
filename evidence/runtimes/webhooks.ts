import {
  decodeHex,
  encodeBytes,
  requireSignature,
  signatureProvider,
} from "../../src/webhooks/custom/index.ts";
import {
  sendgrid,
  standardWebhooks,
  twilio,
  type WebhookProvider,
  WebhookVerificationError,
} from "../../src/webhooks/index.ts";
import vectors from "../../test/unit/webhooks/vectors.json" with { type: "json" };
import { check, failureOf, same } from "./check.ts";

// What the cryptography of a runtime has to verify, for every runtime.

const bytes = (text: string) => new TextEncoder().encode(text);

/** Fails unless the delivery is verified, and an altered one is not. */
async function expectVerified(provider: WebhookProvider, request: Request, body: string): Promise<void> {
  same((await provider.verify(request, bytes(body))).idSigned, true, provider.name);
  const altered = await failureOf(provider.verify(request, bytes(`${body} `)));
  check(altered instanceof WebhookVerificationError, `a WebhookVerificationError of ${provider.name}`);
  same(altered.code, "WEBHOOK_INVALID", `altered body, ${provider.name}`);
}

export const webhookCases: Record<string, () => Promise<void>> = {
  "webhooks signed with SHA-256, SHA-1 and ECDSA are verified": async () => {
    const now = () => vectors.standardWebhooks.deliveries[0]!.now;
    const providers = {
      standardWebhooks: standardWebhooks({ ...vectors.standardWebhooks.options, now }),
      twilio: twilio(vectors.twilio.options),
      sendgrid: sendgrid(vectors.sendgrid.options),
    };
    for (const [sender, provider] of Object.entries(providers)) {
      const delivery = vectors[sender as keyof typeof providers].deliveries[0]!;
      const url = "url" in delivery ? delivery.url : "https://example.com/hook";
      const headers = new Headers(Object.entries(delivery.headers));
      await expectVerified(provider, new Request(url, { method: "POST", headers }), delivery.body);
    }
  },

  "webhooks signed with SHA-512 and RSA are verified": async () => {
    const hmac = { name: "HMAC", hash: "SHA-512" };
    const secret = new Uint8Array(64).fill(7);
    const usages: KeyUsage[] = ["sign", "verify"];
    const hmacKey = await crypto.subtle.importKey("raw", secret, hmac, false, usages);
    const rsa = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
    const pair = (await crypto.subtle.generateKey(
      { ...rsa, modulusLength: 2_048, publicExponent: Uint8Array.of(1, 0, 1) },
      true,
      usages,
    )) as CryptoKeyPair;
    const publicKey = new Uint8Array((await crypto.subtle.exportKey("spki", pair.publicKey)) as ArrayBuffer);
    for (const [algorithm, key, signing] of [
      ["HMAC-SHA512", secret, hmacKey],
      ["RSA-SHA256", publicKey, pair.privateKey],
    ] as const) {
      const provider = signatureProvider({
        name: algorithm,
        algorithm,
        key,
        read: (request, signed) => ({
          signatures: requireSignature("acme", request, "acme-signature", { decode: decodeHex }),
          signed,
        }),
      });
      const signature = new Uint8Array(
        await crypto.subtle.sign(signing.algorithm.name, signing, bytes("{}")),
      );
      const headers = { "acme-signature": encodeBytes(signature, "hex") };
      await expectVerified(provider, new Request("https://example.com/hook", { headers }), "{}");
    }
  },
};
