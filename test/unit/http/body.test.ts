import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { bodyOf, readUpTo, withUnreadBody } from "../../../src/http/body.ts";
import { forbidUnhandledRejections } from "../../support/unhandled.ts";

const bytes = (...values: number[]) => Uint8Array.from(values);

/** A stream of these chunks, and what has become of it. */
function streamOf(...chunks: unknown[]) {
  const source = { pulled: 0, cancelled: undefined as unknown };
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const chunk = chunks[source.pulled];
        if (chunk === undefined) return controller.close();
        source.pulled += 1;
        controller.enqueue(chunk as Uint8Array);
      },
      cancel(reason) {
        source.cancelled = reason;
      },
    },
    { highWaterMark: 0 },
  );
  return { stream, source };
}

async function chunksOf(stream: unknown): Promise<Uint8Array[]> {
  expect(stream).toBeInstanceOf(ReadableStream);
  const chunks: Uint8Array[] = [];
  for await (const chunk of stream as ReadableStream<Uint8Array>) chunks.push(chunk);
  return chunks;
}

describe("readUpTo", () => {
  test.each([
    ["nothing", [], []],
    ["one chunk", [bytes(1, 2)], [1, 2]],
    ["just as much as is allowed, in several chunks", [bytes(1), bytes(2, 3), bytes(4)], [1, 2, 3, 4]],
  ])("reads %s", async (_what, chunks, expected) => {
    const read = await readUpTo(streamOf(...chunks).stream, 4);
    expect(read).toEqual(Uint8Array.from(expected));
  });

  test.each([
    ["in one chunk", [bytes(1, 2, 3, 4, 5)]],
    ["with its second chunk", [bytes(1, 2, 3), bytes(4, 5), bytes(6)]],
  ])("a stream that is too long %s is returned whole, and not read further", async (_how, chunks) => {
    const { stream, source } = streamOf(...chunks);
    const read = await readUpTo(stream, 4);
    expect(source.pulled).toBe(Math.min(chunks.length, 2));
    expect(await chunksOf(read)).toEqual(chunks);
  });

  test("what ends the returned stream ends its source, for the same reason", async () => {
    const { stream, source } = streamOf(bytes(1, 2), bytes(3));
    const read = (await readUpTo(stream, 1)) as ReadableStream;
    await read.cancel("enough");
    expect(source).toEqual({ pulled: 1, cancelled: "enough" });
  });

  test.each(["text", null, [1], new ArrayBuffer(1), new DataView(new ArrayBuffer(1)), Uint16Array.of(300)])(
    "refuses a stream of anything but bytes: %o",
    async (chunk) => {
      await expect(readUpTo(streamOf(chunk).stream, 10)).rejects.toThrow("must be a stream of bytes");
    },
  );

  test("reads bytes of another realm", async () => {
    const read = await readUpTo(streamOf(runInNewContext("Uint8Array.of(1, 2)")).stream, 4);
    expect(read).toEqual(bytes(1, 2));
  });
});

describe("bodyOf", () => {
  forbidUnhandledRejections();
  const request = (body: BodyInit | null, headers: HeadersInit = {}) =>
    new Request("https://a.example", { method: "POST", body, headers, duplex: "half" } as RequestInit);

  test("that is too long is given up, also where its source refuses that", async () => {
    let gaveUp = false;
    const stream = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(bytes(1, 2)),
      cancel() {
        gaveUp = true;
        throw new Error("the source's own");
      },
    });
    expect(await bodyOf(request(stream), 3)).toBe(undefined);
    expect(gaveUp).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
  });
});

describe("withUnreadBody", () => {
  const post = (body: BodyInit | null, signal: AbortSignal | null = null) =>
    new Request("https://a.example/p?q=1", { method: "POST", body, signal, headers: { "x-a": "1" } });

  test("gives back an empty body where there was one, and none where there was none", async () => {
    const read = post("");
    await read.text();
    const given = withUnreadBody(read, bytes());
    expect(given.bodyUsed).toBe(false);
    expect(await given.text()).toBe("");
    expect(withUnreadBody(post(null), bytes()).body).toBe(null);
    expect(await withUnreadBody(post(null), bytes(65)).text()).toBe("A");
  });
});
