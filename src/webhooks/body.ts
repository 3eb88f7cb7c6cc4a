import { sha256Hex } from "../runtime/bytes.ts";
import { isId } from "./header.ts";

/**
 * The SHA-256 of a body, in hex: the id of a delivery whose sender signs none.
 *
 * @example
 * return { id: await bodyHash(body), idSigned: true };
 */
export function bodyHash(body: Uint8Array): Promise<string> {
  return sha256Hex(body);
}

/**
 * The id in a field of a JSON body, else the body's hash. Call it after the signature was verified.
 *
 * @example
 * return { signatures, signed: body, open: async () => ({ id: await bodyId(body, "event_id") }) };
 */
export async function bodyId(body: Uint8Array, field: string): Promise<string> {
  const id = jsonFields(body)[field];
  return isId(id) ? id : bodyHash(body);
}

/**
 * Without a separator of URL and body in the signed text, only such a body is safe: digits at a URL's end are JSON,
 * too.
 */
export function isObjectOrArray(body: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

export function jsonFields(
  body: Uint8Array,
  parse: (text: string) => unknown = JSON.parse,
): Readonly<Record<string, unknown>> {
  try {
    return Object(parse(new TextDecoder().decode(body)));
  } catch {
    return {};
  }
}
