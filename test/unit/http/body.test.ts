import { afterEach, expect, test } from "vitest";
import { bodyOf } from "../../../src/http/body.ts";

const nextServers = Symbol.for("@next/router-server-methods");
const limit = 100_000;
/** Node hands over 64 KiB at once at most, so a body that was cut at the limit is longer than this. */
const surelyWhole = limit - 65_536;
const ofLimit = { proxyClientMaxBodySize: limit };

afterEach(() => Reflect.deleteProperty(globalThis, nextServers));

test.each<
  [what: string, length: number, refused: boolean, headers?: Record<string, string>, limits?: object]
>([
  ["of the limit", limit, true],
  ["that Next.js may have cut at its largest chunk", surelyWhole + 1, true],
  ["with its length", limit, false, { "content-length": `${limit}` }],
  ["that has lost a byte", limit, true, { "content-length": `${limit + 1}` }],
  ["whose length is that of other bytes", limit, true, { "content-length": "9", "content-encoding": "br" }],
  ["that is too short to be cut", surelyWhole, false],
  ["that is longer than the limit", limit + 1, false],
  ["that is empty, below a limit of one chunk", 0, false, {}, { proxyClientMaxBodySize: 9 }],
  ["below a limit that was raised", 10_485_760, false, {}, { proxyClientMaxBodySize: 10_551_296 }],
  ["of the default limit", 10_485_760, true, {}, {}],
])("beside Next.js, a body %s: %d bytes, refused: %j", async (_what, length, refused, headers, limits) => {
  const server = { nextConfig: { experimental: limits ?? ofLimit } };
  Reflect.set(globalThis, nextServers, { "": server });
  const request = new Request("https://a.example", {
    method: "POST",
    body: new Uint8Array(length),
    headers: headers ?? {},
  });
  // Not the bytes, whose difference nobody could print.
  const read = bodyOf(request, 20_000_000).then((body) => body?.length);
  await (refused
    ? expect(read).rejects.toThrow(/proxyClientMaxBodySize/)
    : expect(read).resolves.toBe(length));
});

test("elsewhere, a body without its length is taken as it comes", async () => {
  const request = new Request("https://a.example", { method: "POST", body: new Uint8Array(10_485_760) });
  expect((await bodyOf(request, 20_000_000))?.length).toBe(10_485_760);
});
