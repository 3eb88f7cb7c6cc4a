/**
 * Compares bytes in a time that depends on the length of the first only. Use it for what nobody may guess byte by byte,
 * with the received value first. `signatureCheck` does so with signatures.
 *
 * @example
 * if (!constantTimeEqual(new TextEncoder().encode(token), new TextEncoder().encode(env.VERIFY_TOKEN))) throw …
 */
export function constantTimeEqual(received: Uint8Array, expected: Uint8Array): boolean {
  let difference = received.length ^ expected.length;
  received.forEach((byte, index) => {
    difference |= byte ^ (expected[index] ?? 0);
  });
  return difference === 0;
}
