import { Buffer } from "node:buffer";
import { expect, test } from "vitest";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { RespParser } from "../../../src/rest/redis/resp.ts";

test("replies are parsed that arrive in three pieces, cut at any two places", () => {
  const sent = Buffer.from(
    "+OK\r\n$6\r\na\r\nbcd\r\n:-12\r\n$-1\r\n*3\r\n-ERR no\r\n*1\r\n$0\r\n\r\n$2\r\nü\r\n",
  );
  const list = [new ReplyError("ERR no"), [Buffer.from("")], Buffer.from("ü")];
  const replies = ["OK", Buffer.from("a\r\nbcd"), -12, null, list];
  for (let first = 0; first <= sent.length; first += 1) {
    for (let second = first; second <= sent.length; second += 1) {
      const parser = new RespParser();
      const pieces = [sent.subarray(0, first), sent.subarray(first, second), sent.subarray(second)];
      expect(
        pieces.flatMap((piece) => parser.push(piece)),
        `cut at ${first} and ${second}`,
      ).toEqual(replies);
    }
  }
});
