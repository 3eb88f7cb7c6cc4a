import { Buffer } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { encodeReply, RespParser, StatusReply, type WireReply } from "../../../src/rest/redis/resp.ts";

const line = fc.string().map((text) => text.replace(/[\r\n]/g, " "));
const { reply } = fc.letrec<{ reply: WireReply }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.integer(),
    line.map((text) => new StatusReply(text)),
    line.map((text) => new ReplyError(`ERR ${text}`)),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.array(tie("reply"), { maxLength: 4 }),
  ),
}));

/** Splits bytes at the given positions, each modulo the length. */
function split(bytes: Buffer, positions: readonly number[]): Buffer[] {
  const ends = [...new Set(positions.map((position) => position % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...ends, bytes.length].map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end));
}

describe("RespParser", () => {
  test("parses what encodeReply encodes, for pieces of any size", () => {
    fc.assert(
      fc.property(fc.array(reply), fc.array(fc.nat(), { maxLength: 20 }), (replies, positions) => {
        const parser = new RespParser();
        const pieces = split(Buffer.concat(replies.map(encodeReply)), positions);
        expect(pieces.flatMap((piece) => parser.push(piece))).toEqual(replies);
      }),
    );
  });

  test("parses a large string that arrives in small pieces", () => {
    const parser = new RespParser();
    const bytes = encodeReply(Buffer.alloc(3_000_000, "x"));
    const replies: WireReply[] = [];
    for (let start = 0; start < bytes.length; start += 1000) {
      replies.push(...parser.push(bytes.subarray(start, start + 1000)));
    }
    expect(replies.map((each) => (each as Uint8Array).length)).toEqual([3_000_000]);
  });
});
