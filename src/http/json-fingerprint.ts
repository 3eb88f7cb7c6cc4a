import { type CanonicalOptions, canonicalJson, checkCanonicalOptions } from "../idempotency/canonical.ts";
import { requestFingerprint } from "./fingerprint.ts";
import type { Fingerprint } from "./options.ts";

/**
 * A `fingerprint` for routes that take JSON: method, path with query, and what the body says, whatever the order of its
 * members and its white space. A body that is no JSON, or that RFC 8785 refuses, counts byte for byte.
 *
 * @param options `exclude`: members that a retry writes anew; for the rest see {@link CanonicalOptions}
 * @throws TypeError | RangeError where the options are wrong
 *
 * @example
 * idempotent({ redlock, fingerprint: jsonFingerprint({ exclude: ["timestamp", "client.attempt"] }) });
 */
export function jsonFingerprint(options: CanonicalOptions = {}): Fingerprint {
  const { exclude } = checkCanonicalOptions("jsonFingerprint", options);
  return (request, body) => requestFingerprint(request, canonicalBody(body, exclude));
}

function canonicalBody(body: Uint8Array, exclude: readonly string[] | undefined): Uint8Array {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
    return new TextEncoder().encode(canonicalJson("body", JSON.parse(text), exclude));
  } catch {
    // Also where it is nested too deeply: what a client sends must not become an error of the server.
    return body;
  }
}
