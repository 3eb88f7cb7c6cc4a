import { toHex } from "../bytes.ts";
import { hmacSha256 } from "./hmac.ts";

/**
 * A one-way tag of a secret or public key, 32 digits of hex, which stands for the secret in the scope of keys. Use it
 * to inspect or free the key of a delivery whose provider has no name of its own.
 *
 * @example
 * await inspectKey(idempotency, id, { kind: "http", scope: ["stripe", await secretTag(env.STRIPE_WEBHOOK_SECRET)] });
 */
export async function secretTag(secret: string | Uint8Array): Promise<string> {
  return toHex((await hmacSha256(secret, "redlock-edge: scope of a secret")).subarray(0, 16));
}

/** The part of a {@link VerifiedWebhook} that tells senders with different secrets apart. */
export interface SecretTags {
  readonly secretTags?: readonly string[];
}

/**
 * The tags of a provider's secrets, in the order of the secrets. Computed with the first delivery.
 *
 * @param included false if the provider has a name of its own, which then stands for the secrets
 */
export function secretTags(
  included: boolean,
  secrets: readonly (string | Uint8Array)[],
): () => Promise<SecretTags> {
  // The tags are kept, not the promise of them, which belongs to the request that made it.
  let known: SecretTags | undefined = included ? undefined : {};
  return async () => {
    known ??= { secretTags: await Promise.all(secrets.map(secretTag)) };
    return known;
  };
}
