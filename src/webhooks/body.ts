import { sha256Hex } from "../runtime/bytes.ts";
import { isId } from "./header.ts";

/**
 * SHA-256 of a body as 64 digits of lower-case hex: the id of a delivery whose sender signs none. Bodies that are
 * equal byte for byte have one id, even when the sender repeats them on purpose.
 *
 * @example
 * return { id: await bodyHash(body), idSigned: true };
 */
export function bodyHash(body: Uint8Array): Promise<string> {
  return sha256Hex(body);
}

/**
 * The id in a field of a JSON body, or the body's hash where that field holds no id. Senders also sign bodies
 * without an id (challenges, forms): these are as genuine, and equal bytes have one meaning. Call it only after the
 * signature was verified.
 *
 * @example
 * return { signatures, signed: body, open: async () => ({ id: await bodyId(body, "event_id") }) };
 */
export async function bodyId(body: Uint8Array, field: string): Promise<string> {
  const id = jsonFields(body)[field];
  return isId(id) ? id : bodyHash(body);
}

/**
 * Whether a body is a JSON object or array. Where nothing separates the URL from the body in the signed text, no other body
 * is genuine: the digits at the end of a URL are JSON, too. A part of an object is none, so a body of this form is whole.
 */
export function isObjectOrArray(body: Uint8Array): boolean {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

/** The fields of a JSON object, or none if the body is anything else. */
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
