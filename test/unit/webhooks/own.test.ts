import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { beforeAll, describe, expect, it } from "vitest";
import { isRedlockError } from "../../../src/errors.ts";
import { decodeBase64, decodeHex, signatureCheck } from "../../../src/webhooks/custom/index.ts";
import type { WebhookProvider } from "../../../src/webhooks/index.ts";

const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));
const bytes = (text: string) => new TextEncoder().encode(text);

describe("the example of a provider in the documentation", () => {
  let acme: (secret: string | readonly string[], tolerance?: number) => WebhookProvider;

  beforeAll(async () => {
    const page = readFileSync(path("docs/webhooks.md"), "utf8");
    const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, code]) => code!);
    const example = blocks.filter((code) => code.includes("export function acme"));
    expect(example).toHaveLength(1);
    const { outputFiles } = await build({
      stdin: { contents: example[0]!, loader: "ts", resolveDir: path(".") },
      alias: { "redlock-edge/webhooks/custom": path("src/webhooks/custom/index.ts") },
      bundle: true,
      format: "esm",
      write: false,
    });
    const code = Buffer.from(outputFiles[0]!.contents).toString("base64");
    ({ acme } = await import(/* @vite-ignore */ `data:text/javascript;base64,${code}`));
  });

  const signed = (text: string, seconds = String(Math.floor(Date.now() / 1_000)), id = "evt-1") => ({
    "acme-id": id,
    "acme-time": seconds,
    "acme-signature": createHmac("sha256", "hush").update(`${id}.${seconds}.${text}`).digest("hex"),
  });

  async function outcome(secret: string | string[], headers: Record<string, string>, text = "{}") {
    const request = new Request("https://example.com/acme", { method: "POST", headers });
    return acme(secret)
      .verify(request, bytes(text))
      .catch((error: unknown) => {
        // The bundle is a second copy of the package: its errors are recognised by their brand.
        expect(isRedlockError(error)).toBe(true);
        return (error as { reason: string }).reason;
      });
  }

  it("accepts a genuine delivery that any of its secrets signed", async () => {
    const headers = signed("{}");
    const verified = { id: "evt-1", timestamp: Number(headers["acme-time"]) * 1_000, idSigned: true };
    expect(await outcome("hush", headers)).toEqual(verified);
    expect(await outcome(["new", "hush"], headers)).toEqual(verified);
  });

  it("refuses everything else, with the right reason", async () => {
    const headers = signed("{}");
    expect(await outcome("new", headers)).toBe("bad-signature");
    expect(await outcome("hush", headers, "[]")).toBe("bad-signature");
    expect(await outcome("hush", { ...headers, "acme-id": "evt-2" })).toBe("bad-signature");
    expect(await outcome("hush", { ...headers, "acme-signature": "xyz" })).toBe("malformed-header");
    expect(await outcome("hush", signed("{}", undefined, "a.b"))).toBe("malformed-header");
    expect(await outcome("hush", signed("{}", "1531420618"))).toBe("outside-tolerance");
    expect(await outcome("hush", { "acme-id": "evt-1" })).toBe("missing-header");
  });
});

describe("signatureCheck", () => {
  const digest = (key: string | Uint8Array, text: string) =>
    new Uint8Array(createHmac("sha256", key).update(text).digest());

  it("accepts any of the signatures by any of the keys, with text before the body", async () => {
    const signed = signatureCheck("HMAC-SHA256", ["żółć", Uint8Array.of(0, 255)]);
    for (const key of ["żółć", Uint8Array.of(0, 255)]) {
      expect(await signed([digest(key, "body")], bytes("body"))).toBe(true);
      expect(await signed([digest("no", "body"), digest(key, "é.body")], ["é.", bytes("body")])).toBe(true);
      expect(await signed([digest(key, "é.body")], bytes("body"))).toBe(false);
      expect(await signed([digest(key, "body").subarray(1)], bytes("body"))).toBe(false);
    }
    expect(await signed([], bytes("body"))).toBe(false);
  });
});

describe("decodeHex and decodeBase64", () => {
  it("accept only the canonical spelling of each value", () => {
    for (const value of [[], [0], [0, 255], [1, 2, 3, 250]]) {
      const given = Uint8Array.from(value);
      expect(decodeHex(Buffer.from(given).toString("hex"))).toEqual(given);
      expect(decodeBase64(Buffer.from(given).toString("base64"))).toEqual(given);
    }
    for (const text of ["0", "0g", "FF", " 00", "00 ", "0x00"]) expect(decodeHex(text)).toBeUndefined();
    for (const text of ["A", "AA", "AB==", "AA=", "A-==", "AA==\n", "_w=="])
      expect(decodeBase64(text)).toBeUndefined();
  });
});
