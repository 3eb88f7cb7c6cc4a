import { concatBytes } from "../runtime/bytes.ts";
import { formatTime } from "../runtime/runtime.ts";
import { encodeBytes } from "../webhooks/encoding.ts";
import type { Scheme } from "../webhooks/scheme.ts";
import {
  algorithms,
  importKey,
  joined,
  type Key,
  type SignatureAlgorithm,
  type SignedParts,
} from "../webhooks/signature-check.ts";

export async function sign(
  algorithm: SignatureAlgorithm,
  key: Key | CryptoKey,
  signed: SignedParts,
): Promise<Uint8Array> {
  const isSecret = typeof key === "string" || key instanceof Uint8Array;
  const imported = isSecret ? await importKey(algorithm, key) : key;
  return new Uint8Array(await crypto.subtle.sign(algorithms[algorithm], imported, joined(signed)));
}

/** RSA's are as long as the key. */
export function placeholder(algorithm: SignatureAlgorithm): Uint8Array {
  return new Uint8Array(algorithms[algorithm].signatureLength ?? 256).fill(1);
}

const encoders = [
  (bytes: Uint8Array) => encodeBytes(bytes, "hex"),
  (bytes: Uint8Array) => encodeBytes(bytes, "base64"),
  (bytes: Uint8Array) => encodeBytes(bytes, "base64url"),
  (bytes: Uint8Array) => encodeBytes(der(bytes), "base64"),
];

export function encode(signature: Uint8Array, decode: NonNullable<Scheme["decode"]>): string {
  const spelled = encoders.map((encoder) => encoder(signature));
  return spelled.find((text) => `${decode(text)}` === `${signature}`)!;
}

export function spellTime(time: number, parse: NonNullable<Scheme["parseTime"]>): string {
  const second = Math.floor(time / 1_000);
  const isRead = (text: string) => {
    try {
      return Math.floor(parse("", "", text) / 1_000) === second;
    } catch {
      return false;
    }
  };
  const spelled = [String(second), String(Math.floor(time)), formatTime(time)].find(isRead);
  if (spelled === undefined) throw new RangeError(`timestamp must be in ms since 1970, not ${time}`);
  return spelled;
}

function der(raw: Uint8Array): Uint8Array {
  const numbers = [raw.subarray(0, 32), raw.subarray(32)].map((number) => {
    const digits = number.subarray(number.findIndex(Boolean));
    // The highest bit is the sign.
    const positive = digits[0]! < 0x80 ? digits : concatBytes([Uint8Array.of(0), digits]);
    return concatBytes([Uint8Array.of(2, positive.length), positive]);
  });
  const content = concatBytes(numbers);
  return concatBytes([Uint8Array.of(0x30, content.length), content]);
}
