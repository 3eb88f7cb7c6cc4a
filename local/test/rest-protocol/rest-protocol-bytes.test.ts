import { describe, expect, test } from "vitest";
import { engines } from "../../../test/support/redis-servers.ts";
import { oneEndpoint } from "./one-endpoint.ts";

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const bytes: [string, Uint8Array][] = [
  ["every byte", everyByte],
  ["every byte, backwards", everyByte.slice().reverse()],
  ["a lone continuation byte", Uint8Array.of(0x80)],
  ["a character that is cut", Uint8Array.of(0xf0, 0x9f, 0x94)],
  ["half of a surrogate pair", Uint8Array.of(0xed, 0xa0, 0x80)],
  ["a byte order mark", Uint8Array.of(0xef, 0xbb, 0xbf, 0x61)],
  ["text", new TextEncoder().encode("ünïcödé 你好 🔒")],
  ["line ends", Uint8Array.of(13, 10, 0, 10, 13)],
  ["a megabyte", Uint8Array.from({ length: 1_000_000 }, (_, index) => (index * 131) % 256)],
];

const percents = (text: string) => Buffer.from(text, "latin1").toString("hex").replace(/../g, "%$&");

describe.each(engines)("bytes over REST on %s", (engine) => {
  const one = oneEndpoint({ engine });
  const { send, post } = one;
  const json = async (path: string) => (await one.request(path)).json;

  /** The bytes of a reply as latin1, taken from its exact base64 form. */
  async function latin1(path: string): Promise<string | string[] | null> {
    const { json } = await one.request(path, { headers: { "upstash-encoding": "base64" } });
    const { result } = json;
    const decode = (text: string) => Buffer.from(text, "base64").toString("latin1");
    return Array.isArray(result) ? result.map(decode) : typeof result === "string" ? decode(result) : result;
  }

  test.each(bytes)("a body of %s is stored as it is", async (_, value) => {
    expect((await post(value, "/set/key")).json).toEqual({ result: "OK" });
    expect(await latin1("/get/key")).toBe(Buffer.from(value).toString("latin1"));
    const resp2 = await send("/get/key", { headers: { "upstash-response-format": "resp2" } });
    const sent = Buffer.from(await resp2.arrayBuffer());
    expect(sent.subarray(sent.indexOf("\n") + 1, -2).equals(value)).toBe(true);
  });

  test("a body of bytes precedes the options of the query", async () => {
    await post(everyByte, "/set/key?PX=100000");
    expect(await one.endpoint.execute(["PTTL", "key"])).toBeGreaterThan(0);
    expect(await latin1("/get/key")).toHaveLength(256);
  });

  test("JSON has U+FFFD for bytes that are not UTF-8", async () => {
    await post(Uint8Array.of(0x61, 0xff, 0x62), "/set/key");
    expect(await json("/get/key")).toEqual({ result: "a\ufffdb" });
  });

  test.each(["\xff", "\xc3", "a\xed\xa0\x80z", "\x00\x01", "%", "+ &=?#/", "\xc3\xa9"])(
    "percent-encoded bytes in a path are bytes: %j",
    async (key) => {
      await send(`/set/${percents(key)}/${percents(`value ${key}`)}`);
      expect(await latin1(`/get/${percents(key)}`)).toBe(`value ${key}`);
      expect(await latin1("/keys/*")).toEqual([key]);
      // A different key that is the same when it is decoded as text.
      expect(await latin1(`/get/${percents(`${key}\xfe`)}`)).toBeNull();
    },
  );

  test("percent-encoded bytes in a query are bytes, and a plus is a space", async () => {
    await send(`/set?key=${percents("\xff=")}`);
    expect(await latin1("/get/key")).toBe("\xff=");
    await send("/set?key=+%2B");
    expect(await latin1("/get/key")).toBe(" +");
    await send("/set?b=x=y&&_token=");
    expect(await one.endpoint.execute(["GET", "b"])).toBeNull();
    await send(`/set?b=x=y&&_token=${one.endpoint.token}`);
    expect(await one.endpoint.execute(["GET", "b"])).toBe("x=y");
  });

  test("bytes are compared", async () => {
    await post(Uint8Array.of(0xff, 0xfe), "/set/key");
    expect(await json(`/delex/key/IFEQ/${percents("\xff\xfd")}`)).toEqual({ result: 0 });
    expect(await json(`/set/key/${percents("\xfd")}/IFEQ/${percents("\xff\xfe")}`)).toEqual({
      result: "OK",
    });
    expect(await latin1("/get/key")).toBe("\xfd");
  });

  const hasLua = engine === "redis" ? test : () => undefined;
  hasLua("bytes are passed to scripts", async () => {
    const script = encodeURIComponent("return {ARGV[1], #ARGV[1], KEYS[1] == ARGV[1]}");
    const reply = await json(`/eval/${script}/1/${percents("\xff")}/${percents("\xff")}`);
    expect(reply).toEqual({ result: ["\ufffd", 1, 1] });
  });

  hasLua("a script that is not UTF-8 has the SHA-1 of its bytes", async () => {
    const script = Buffer.from("return '\xff' -- \xfe", "latin1");
    const { result: sha } = (await post(script, "/script/load")).json;
    expect(sha).toBe(
      await crypto.subtle.digest("SHA-1", script).then((hash) => Buffer.from(hash).toString("hex")),
    );
    expect(await latin1(`/evalsha/${sha}/0`)).toBe("\xff");
  });

  test("the log has bytes as text", async () => {
    await post(Uint8Array.of(0x61, 0xff), "/set/key");
    expect(one.endpoint.log.entries[0]!.command).toEqual(["set", "key", "a\ufffd"]);
  });
});
