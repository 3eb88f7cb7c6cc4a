import { Buffer } from "node:buffer";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";

/**
 * A reply with the distinctions of RESP2, which JSON loses: a status is a string, a bulk string its bytes, a nil `null`, and an
 * error a `ReplyError`, which may also be an item of an array. The embedded engine has strings in place of bytes.
 */
export type WireReply = string | ReplyError | Uint8Array | number | null | readonly WireReply[];

/** @internal Encodes commands as RESP2 arrays of bulk strings, one after another: a pipeline. */
export function encodeCommands(commands: readonly (readonly string[])[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const command of commands) {
    parts.push(Buffer.from(`*${command.length}\r\n`));
    for (const argument of command) {
      const bytes = Buffer.from(argument);
      parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n"));
    }
  }
  return Buffer.concat(parts);
}

/** @internal Parses a stream of RESP2 bytes into replies. Bytes may arrive in pieces of any size. */
export class RespParser {
  #pieces: Buffer[] = [];
  #size = 0;
  /** Bytes that are needed before parsing goes on. */
  #wanted = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #offset = 0;

  /** Adds bytes and returns the replies that they complete. Throws an `Error` on bytes that are not RESP2. */
  push(piece: Buffer): WireReply[] {
    this.#pieces.push(piece);
    this.#size += piece.length;
    // A large bulk string is joined once, when it is complete: joining at every piece would be quadratic.
    if (this.#size < this.#wanted) return [];
    this.#bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces);
    this.#offset = 0;
    this.#wanted = 0;
    const replies: WireReply[] = [];
    let complete = 0;
    for (let reply = this.#read(); reply !== undefined; reply = this.#read()) {
      replies.push(reply);
      complete = this.#offset;
    }
    const rest = this.#bytes.subarray(complete);
    this.#pieces = rest.length > 0 ? [rest] : [];
    this.#size = rest.length;
    this.#wanted = Math.max(0, this.#wanted - complete);
    return replies;
  }

  /** The next reply, or undefined while it is incomplete. */
  #read(): WireReply | undefined {
    const end = this.#bytes.indexOf("\r\n", this.#offset);
    if (end < 0) return undefined;
    const kind = String.fromCharCode(this.#bytes[this.#offset]!);
    const line = this.#bytes.toString("utf8", this.#offset + 1, end);
    this.#offset = end + 2;
    switch (kind) {
      case "+":
        return line;
      case "-":
        return new ReplyError(line);
      case ":":
        return Number(line);
      case "$":
        return line === "-1" ? null : this.#bulk(Number(line));
      case "*":
        return line === "-1" ? null : this.#array(Number(line));
      default:
        throw new Error(`not a RESP2 reply: it begins with ${JSON.stringify(kind)}`);
    }
  }

  #bulk(length: number): Uint8Array | undefined {
    const end = this.#offset + length;
    if (end + 2 > this.#bytes.length) {
      this.#wanted = end + 2;
      return undefined;
    }
    const bytes = this.#bytes.subarray(this.#offset, end);
    this.#offset = end + 2;
    return bytes;
  }

  #array(length: number): WireReply[] | undefined {
    const replies: WireReply[] = [];
    for (let index = 0; index < length; index++) {
      const reply = this.#read();
      if (reply === undefined) return undefined;
      replies.push(reply);
    }
    return replies;
  }
}
