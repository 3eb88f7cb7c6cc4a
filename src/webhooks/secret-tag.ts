/**
 * A one-way tag of a secret or public key, 32 digits of hex: it stands for the secret in the scope of keys. With it
 * an operator finds the key of a delivery whose provider has no name of its own.
 *
 * @example
 * await idempotency.inspect(id, { kind: "http", scope: ["stripe", await secretTag(env.STRIPE_WEBHOOK_SECRET)] });
 */
export async function secretTag(secret: string | Uint8Array): Promise<string> {
  const bytes = typeof secret === "string" ? new TextEncoder().encode(secret) : secret;
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  // Narrowed to what newer type libraries ask for: it must not be shared memory.
  const key = await crypto.subtle.importKey("raw", bytes as Uint8Array<ArrayBuffer>, algorithm, false, [
    "sign",
  ]);
  const tag = await crypto.subtle.sign(
    "HMAC",
    key,
    new TextEncoder().encode("redlock-edge: scope of a secret"),
  );
  return Array.from(new Uint8Array(tag, 0, 16), (byte) => (byte + 256).toString(16).slice(1)).join("");
}

/**
 * What a provider tells of its secrets: their tags, unless it was given a name, which then stands for them.
 *
 * @param secrets in the order in which they are given
 */
export function secretTags(
  name: string | undefined,
  secrets: readonly (string | Uint8Array)[],
): () => Promise<{ readonly secretTags?: readonly string[] }> {
  // The tags are kept, not the promise of them: it belongs to the request that made it.
  let known: { readonly secretTags?: readonly string[] } | undefined = name === undefined ? undefined : {};
  return async () => {
    known ??= { secretTags: await Promise.all(secrets.map(secretTag)) };
    return known;
  };
}
