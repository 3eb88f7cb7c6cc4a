import { toOctets } from "../commands/bytes.ts";

/**
 * SHA-1 of a byte string, as 40 hex digits: the id of a script for EVALSHA. Synchronous, because a command must be
 * executed atomically and Web Crypto has only promises. Do not use it for security.
 *
 * @example
 * sha1("a"); // "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
 */
export function sha1(bytes: string): string {
  const words = paddedWords(toOctets(bytes));
  const schedule = new Int32Array(80);
  const state = [0x67452301, 0xefcdab89 | 0, 0x98badcfe | 0, 0x10325476, 0xc3d2e1f0 | 0];

  for (let block = 0; block < words.length; block += 16) {
    let [h0, h1, h2, h3, h4] = state as [number, number, number, number, number];
    for (let round = 0; round < 80; round++) {
      schedule[round] =
        round < 16
          ? words[block + round]!
          : rotate(
              schedule[round - 3]! ^ schedule[round - 8]! ^ schedule[round - 14]! ^ schedule[round - 16]!,
              1,
            );
      const [mix, constant] =
        round < 20
          ? [(h1 & h2) | (~h1 & h3), 0x5a827999]
          : round < 40
            ? [h1 ^ h2 ^ h3, 0x6ed9eba1]
            : round < 60
              ? [(h1 & h2) | (h1 & h3) | (h2 & h3), 0x8f1bbcdc]
              : [h1 ^ h2 ^ h3, 0xca62c1d6];
      const next = (rotate(h0, 5) + mix! + h4 + constant! + schedule[round]!) | 0;
      [h4, h3, h2, h1, h0] = [h3, h2, rotate(h1, 30), h0, next];
    }
    for (const [index, word] of [h0, h1, h2, h3, h4].entries()) state[index] = (state[index]! + word) | 0;
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The padded message as big-endian words: its bytes, a one bit, zeros up to a full block, its length in bits. */
function paddedWords(octets: Uint8Array): Int32Array {
  const words = new Int32Array(((octets.length + 8) >> 6) * 16 + 16);
  for (let index = 0; index < octets.length; index++) {
    words[index >> 2]! |= octets[index]! << (24 - 8 * (index & 3));
  }
  words[octets.length >> 2]! |= 0x80 << (24 - 8 * (octets.length & 3));
  words[words.length - 2] = Math.floor(octets.length / 2 ** 29);
  words[words.length - 1] = octets.length << 3;
  return words;
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
