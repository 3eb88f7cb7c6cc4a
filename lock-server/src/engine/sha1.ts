/**
 * SHA-1 of a text, as 40 hex digits: the id of a script for EVALSHA. Synchronous, because a command must be executed
 * atomically and Web Crypto has only promises. Do not use it for security.
 *
 * @example
 * sha1("a"); // "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"
 */
export function sha1(text: string): string {
  const words = paddedWords(new TextEncoder().encode(text));
  const schedule = new Int32Array(80);
  const state = Int32Array.of(0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0);
  for (let block = 0; block < words.length; block += 16) {
    schedule.set(words.subarray(block, block + 16));
    for (let round = 16; round < 80; round++) {
      const mixed =
        schedule[round - 3]! ^ schedule[round - 8]! ^ schedule[round - 14]! ^ schedule[round - 16]!;
      schedule[round] = rotate(mixed, 1);
    }
    addBlock(state, schedule);
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The 80 rounds of a block. Without arrays or closures inside: scripts are hashed often. */
function addBlock(state: Int32Array, schedule: Int32Array): void {
  let [h0, h1, h2, h3, h4] = state as unknown as [number, number, number, number, number];
  for (let round = 0; round < 80; round++) {
    let mix = h1 ^ h2 ^ h3;
    if (round < 20) mix = (h1 & h2) | (~h1 & h3);
    else if (round >= 40 && round < 60) mix = (h1 & h2) | (h1 & h3) | (h2 & h3);
    const next = (rotate(h0, 5) + mix + h4 + constants[(round / 20) | 0]! + schedule[round]!) | 0;
    h4 = h3;
    h3 = h2;
    h2 = rotate(h1, 30);
    h1 = h0;
    h0 = next;
  }
  state[0]! += h0;
  state[1]! += h1;
  state[2]! += h2;
  state[3]! += h3;
  state[4]! += h4;
}

/** Of each 20 rounds. */
const constants = [0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6];

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
