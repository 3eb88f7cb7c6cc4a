import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import * as custom from "../../../src/webhooks/custom/index.ts";
import { type WebhookProvider, WebhookVerificationError } from "../../../src/webhooks/index.ts";
import { bytes } from "./outcome.ts";
import { make, providerOf, type Vector, vectorOf, vectors } from "./vectors.ts";

// What a person reads who made a mistake: at set-up, or in the log when a delivery is refused. The rows are in
// mistakes.json.

type Options = Readonly<Record<string, unknown>>;

const senders = new Set(vectors.map(({ sender }) => sender));

const {
  setUp,
  refusals,
}: {
  /** By function: options instead of those that it needs, and what the error says. */
  readonly setUp: Readonly<Record<string, readonly (readonly [options: Options, message: string])[]>>;
  readonly refusals: readonly [
    call: string,
    options: Options,
    headers: Record<string, string>,
    message: string,
  ][];
} = JSON.parse(readFileSync(new URL("mistakes.json", import.meta.url), "utf8"));

const own: Readonly<Record<string, Options>> = {
  signatureProvider: { name: "acme", algorithm: "HMAC-SHA256", key: "hush", header: "acme-signature" },
};

/** Calls a function that makes a provider, as from JavaScript. */
function provider(call: string, options: unknown): WebhookProvider {
  if (!(call in own)) return make(call, options);
  return (custom as unknown as Record<string, (options: unknown) => WebhookProvider>)[call]!(options);
}

const rows = Object.entries(setUp).flatMap(([call, list]) => list.map((row) => [call, ...row] as const));

test.each(rows)("%s refuses %j at once", (call, changed, message) => {
  const options = { ...(own[call] ?? vectorOf(call).options), ...changed };
  const given = Object.entries(options).filter(([, value]) => value !== "(absent)");
  const set = () => provider(call, Object.fromEntries(given));
  expect(set).toThrow(TypeError);
  expect(set).toThrow(new RegExp(message));
});

/** What a variable holds instead of its secret, and what the error says. */
const noise: readonly (readonly [text: (key: string) => string, message: RegExp])[] = [
  [(key) => `"${key}"`, / has quotes around it/],
  [(key) => `'${key}'`, / has quotes around it/],
  [(key) => `ACME_SECRET=${key}`, / begins with the name of a variable/],
  [(key) => `export ACME="${key}"`, / begins with the name of a variable/],
  [() => "undefined", / is the text "undefined"/],
  [() => "[object Object]", / is the text "\[object Object\]"/],
  [(key) => `${key},${key}`, /: several are an array/],
  [(key) => `${key} ${key}`, /: several are an array/],
];
// Their users choose the text: it may contain a comma or a space.
const isChosen = /^(github|lemonSqueezy|twitch|signatureProvider)$/;

test.each([...senders, "signatureProvider"])("%s says what else stands in a secret's variable", (call) => {
  const needed = own[call] ?? vectorOf(call).options;
  const [option, key] = Object.entries(needed).find(([name]) => /^(secret|publicKey|key)$/.test(name))!;
  for (const [text, message] of noise) {
    const given = text(String(key));
    const set = (value: unknown) => () => provider(call, { ...needed, [option]: value });
    if (isChosen.test(call) && given.endsWith(`${key}`) && message.test(": several are an array")) continue;
    for (const value of [given, [key, given]]) {
      expect(set(value), given).toThrow(TypeError);
      expect(set(value), given).toThrow(message);
      expect(set(value), given).not.toThrow(String(key));
    }
  }
});

test("signatureProvider takes either header and what belongs to it, or read", () => {
  const { header, ...rest } = own.signatureProvider!;
  const read = () => ({ signatures: [], signed: "" });
  const set = (options: Options) => () => provider("signatureProvider", options);
  expect(set({ ...rest, read, encoding: undefined, tolerance: 5_000 })).not.toThrow();
  expect(set({ ...rest, header, read })).toThrow(/^header says what read says itself/);
  expect(set({ ...rest, read, prefix: "v1=" })).toThrow(/^prefix says what read/);
  expect(set(rest)).toThrow(/^header is missing/);
  expect(() => provider("signatureProvider", null)).toThrow("signatureProvider needs an object of options");
});

test("signatureProvider takes the time for which its sender retries", () => {
  const set = (retries: unknown) => provider("signatureProvider", { ...own.signatureProvider, retries });
  expect(set(3_600_000).retries).toBe(3_600_000);
  for (const bad of [-1, 0.5, Infinity]) expect(() => set(bad)).toThrow(RangeError);
});

/** What the error says when a provider with these options refuses a genuine delivery. */
async function refusalOf(vector: Vector, options: object): Promise<string> {
  const { url, headers, body } = vector;
  const request = new Request(url, { method: "POST", headers });
  const error: Error = await providerOf(vector, options)
    .verify(request, bytes(body))
    .catch((thrown) => thrown);
  return error.message;
}

const compared = "https://shop.example/hook?…";

test.each([
  ["twilio", {}, compared],
  ["hubspot", {}, compared],
  ["square", { url: "https://me:hidden@shop.example/hook?key=hidden" }, compared],
  ["square", { url: () => `https://shop.example/${"long".repeat(10_000)}` }, "https://shop.example/longlong"],
  ["twilio", { url: () => "/hook" }, "/hook"],
])("%s with %j names the URL that it has compared, without a secret", async (call, options, named) => {
  const vector = vectorOf(call);
  const url = "https://shop.example/hook?hidden=1";
  const message = await refusalOf({ ...vector, url }, { ...options, secret: vector.other });
  expect(message).toContain(` another URL than ${named}`);
  expect(message).toMatch(
    /: if a proxy changes host or protocol, set the option url to the URL that the sender calls$/,
  );
  expect(message).not.toMatch(/hidden/);
  // The console's line has 800 characters of it.
  expect(message.length).toBeLessThan(800);
});

test("qstash names the URL that the message was not signed for", async () => {
  const message = await refusalOf(vectorOf("qstash"), { url: "https://other.example/hook?key=hidden" });
  expect(message).toBe("qstash: the JWT's claim sub differs from https://other.example/hook?…");
});

test.each(refusals)("%s with %j refuses %j and says why", async (call, options, headers, message) => {
  // Not all of them have a clock.
  const now = () => 1_763_714_567_000;
  const isTimed = /^(slack|standardWebhooks|stripe|hubspot|twitch|qstash)$/.test(call) || "time" in options;
  const by = provider(call, { ...options, ...(isTimed && { now }) });
  const request = new Request("https://example.com", { method: "POST", headers });
  const error: unknown = await by.verify(request, bytes("{}")).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(WebhookVerificationError);
  expect((error as Error).message).toBe(message);
});
