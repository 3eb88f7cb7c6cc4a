import { createHash, webcrypto } from "node:crypto";

/**
 * Makes digests synchronous: Node computes them in a thread pool, in real time. With this, the same digest is ready at
 * the same virtual moment, every time.
 *
 * @returns undoes it
 */
export function makeDigestSynchronous(): () => void {
  const { subtle } = webcrypto;
  const own = Object.getOwnPropertyDescriptor(subtle, "digest");
  Object.defineProperty(subtle, "digest", {
    configurable: true,
    value: (algorithm: string, data: Uint8Array) => {
      const digest = createHash(algorithm.replace("-", "")).update(data).digest();
      return Promise.resolve(new Uint8Array(digest).buffer);
    },
  });
  return () => {
    if (own) Object.defineProperty(subtle, "digest", own);
    else Reflect.deleteProperty(subtle, "digest");
  };
}
