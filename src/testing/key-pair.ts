import { encodeBytes } from "../webhooks/encoding.ts";
import { standardWebhooks } from "../webhooks/senders/standard-webhooks.ts";
import { discord, sendgrid } from "../webhooks/senders/table.ts";
import { algorithms } from "../webhooks/signature-check.ts";

/** The keys of a sender that signs with a private key. */
export interface TestKeyPair {
  /** As the sender shows it. */
  readonly publicKey: string;
  /** For {@link signedDelivery}. */
  readonly privateKey: CryptoKey;
}

const senders = new Map([
  [discord, { algorithm: "Ed25519", format: "raw", text: (key) => encodeBytes(key, "hex") }],
  [sendgrid, { algorithm: "ECDSA-P256-SHA256", format: "spki", text: (key) => encodeBytes(key, "base64") }],
  [
    standardWebhooks,
    { algorithm: "Ed25519", format: "raw", text: (key) => `whpk_${encodeBytes(key, "base64")}` },
  ],
] as readonly (readonly [unknown, PublicKeyForm])[]);

interface PublicKeyForm {
  readonly algorithm: "Ed25519" | "ECDSA-P256-SHA256";
  readonly format: "raw" | "spki";
  readonly text: (key: Uint8Array) => string;
}

/**
 * Generates keys for a sender that signs with a private key.
 *
 * @throws {TypeError} `sender` is another function, whose secret you choose
 *
 * @example
 * const keys = await keyPairFor(discord);
 * const app = appWith({ DISCORD_PUBLIC_KEY: keys.publicKey });
 * const delivery = await signedDelivery(discord, keys, { body: { type: 1 } });
 */
export async function keyPairFor(
  sender: typeof discord | typeof sendgrid | typeof standardWebhooks,
): Promise<TestKeyPair> {
  const form = senders.get(sender);
  if (!form)
    throw new TypeError("sender must be discord, sendgrid or standardWebhooks: others have a secret");
  const { algorithm, format, text } = form;
  const pair = await crypto.subtle.generateKey(algorithms[algorithm], true, ["sign", "verify"]);
  const { publicKey, privateKey } = pair as CryptoKeyPair;
  return { publicKey: text(new Uint8Array(await crypto.subtle.exportKey(format, publicKey))), privateKey };
}
