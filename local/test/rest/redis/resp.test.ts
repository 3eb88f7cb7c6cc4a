import { Buffer } from "node:buffer";
import fc from "fast-check";
import { expect, test } from "vitest";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { RespParser, type WireReply } from "../../../src/rest/redis/resp.ts";

const line = fc.string().map((text) => text.replace(/[\r\n]/g, " "));
/** A reply, and how a server sends it. */
const { pair } = fc.letrec<{ pair: { reply: WireReply; sent: Buffer } }>((tie) => ({
  pair: fc.oneof(
    { maxDepth: 3 },
    fc.constant({ reply: null, sent: Buffer.from("$-1\r\n") }),
    fc.integer().map((reply) => ({ reply, sent: Buffer.from(`:${reply}\r\n`) })),
    line.map((text) => ({ reply: text, sent: Buffer.from(`+${text}\r\n`) })),
    line.map((text) => ({ reply: new ReplyError(`ERR ${text}`), sent: Buffer.from(`-ERR ${text}\r\n`) })),
    fc.uint8Array({ maxLength: 300 }).map((bytes) => {
      const sent = Buffer.concat([Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")]);
      return { reply: Buffer.from(bytes), sent };
    }),
    fc.array(tie("pair"), { maxLength: 4 }).map((pairs) => ({
      reply: pairs.map(({ reply }) => reply),
      sent: Buffer.concat([Buffer.from(`*${pairs.length}\r\n`), ...pairs.map(({ sent }) => sent)]),
    })),
  ),
}));

/** Splits bytes at the given positions, each modulo the length. */
function split(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const ends = [...new Set(positions.map((position) => position % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

test("RespParser parses replies that arrive in pieces of any size", () => {
  fc.assert(
    fc.property(fc.array(pair), fc.array(fc.nat(), { maxLength: 20 }), (pairs, positions) => {
      const parser = new RespParser();
      const pieces = split(Buffer.concat(pairs.map(({ sent }) => sent)), positions);
      expect(pieces.flatMap((piece) => parser.push(piece))).toEqual(pairs.map(({ reply }) => reply));
    }),
  );
});
