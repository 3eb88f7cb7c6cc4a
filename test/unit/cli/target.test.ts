import { createHmac, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { parseLine, UsageError } from "../../../src/cli/command.ts";
import { kindOf } from "../../../src/cli/kinds.ts";
import { scopeOptions, scopeWords, targetOf } from "../../../src/cli/target.ts";
import { discord, github, secretTag, sendgrid, standardWebhooks } from "../../../src/webhooks/index.ts";

const options = { ...scopeOptions, key: { type: "string" } } as const;
const variables = { SECRET: "whsec_1", EMPTY: "" };

function parse(line: string) {
  const { values, positionals } = parseLine(line.split(" ").filter(Boolean), options);
  return { target: targetOf(values, positionals, variables), words: scopeWords(values) };
}

describe("targetOf", () => {
  test.each([
    ["--key k", { key: "k", options: { kind: "run" } }],
    ["--key k --scope a", { key: "k", options: { kind: "run", scope: "a" } }],
    ["--key k --scope a --scope b", { key: "k", options: { kind: "run", scope: ["a", "b"] } }],
    ["--key k --scope a --scope-list", { key: "k", options: { kind: "run", scope: ["a"] } }],
    ["--key k --http --scope a", { key: "k", options: { kind: "http", scope: "a" } }],
    ["--key k --flight --scope a", { key: "k", options: { kind: "flight", scope: "a" } }],
    ["--key k --webhook github", { key: "k", options: { kind: "http", scope: ["github"] } }],
    ["--key k --webhook github --scope a", { key: "k", options: { kind: "http", scope: ["github", "a"] } }],
  ])("finds the key of '%s'", async (line, target) => {
    const parsed = parse(line);
    expect(await parsed.target).toEqual(target);
    // The words name the same key again.
    expect(await parse(`--key k ${parsed.words}`).target).toEqual(target);
  });

  test("finds a resource", async () => {
    expect(await parse("invoice:42").target).toEqual({ resource: "invoice:42" });
  });

  test("puts the tag of a webhook's secret into the scope, and never prints the secret", async () => {
    const parsed = parse("--key k --webhook stripe --secret-env SECRET --scope a");
    const scope = ["stripe", await secretTag("whsec_1"), "a"];
    expect(await parsed.target).toEqual({ key: "k", options: { kind: "http", scope } });
    expect(parsed.words).toBe(" --scope a --webhook stripe --secret-env SECRET");
  });

  test("finds the tag that each provider puts into the scope", async () => {
    const id = "msg_1";
    const now = Math.floor(Date.now() / 1_000);
    const body = '{"id":"msg_1"}';
    const bytes = new TextEncoder().encode(body);
    const whsec = `whsec_${randomBytes(32).toString("base64")}`;
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const hex = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const pem = p256.publicKey.export({ format: "pem", type: "spki" }).toString();
    const request = (headers: Record<string, string>) =>
      new Request("https://a.example", { method: "POST", headers, body });
    const providers = [
      {
        secret: "It's a Secret",
        provider: github({ secret: "It's a Secret" }),
        delivery: request({
          "x-github-delivery": id,
          "x-github-event": "push",
          "x-hub-signature-256": `sha256=${createHmac("sha256", "It's a Secret").update(body).digest("hex")}`,
        }),
      },
      {
        secret: whsec,
        provider: standardWebhooks({ secret: whsec }),
        delivery: request({
          "webhook-id": id,
          "webhook-timestamp": String(now),
          "webhook-signature": new Webhook(whsec).sign(id, new Date(now * 1_000), body),
        }),
      },
      {
        secret: hex,
        provider: discord({ publicKey: hex }),
        delivery: request({
          "x-signature-timestamp": String(now),
          "x-signature-ed25519": sign(null, Buffer.from(now + body), privateKey).toString("hex"),
        }),
      },
      ...[pem, pem.replace(/-----[^-]+-----|\n/g, "")].map((secret) => ({
        secret,
        provider: sendgrid({ publicKey: secret }),
        delivery: request({
          "x-twilio-email-event-webhook-timestamp": String(now),
          "x-twilio-email-event-webhook-signature": sign(
            "sha256",
            Buffer.from(now + body),
            p256.privateKey,
          ).toString("base64"),
        }),
      })),
    ];
    for (const { secret, provider, delivery } of providers) {
      const { secretTags } = await provider.verify(delivery, bytes);
      const values = { key: id, webhook: provider.name, "secret-env": "SECRET" };
      const target = await targetOf(values, [], { SECRET: secret });
      expect(target).toEqual({ key: id, options: { kind: "http", scope: [provider.name, ...secretTags!] } });
    }
  });

  test.each([
    ["", "a resource, or --key, is missing"],
    ["a b", "unexpected argument 'b'"],
    ["a --key k", "not both"],
    ["a --scope s", "--scope needs --key"],
    ["--key=", "the key is missing"],
    ["--key k --scope=", "must not be empty"],
    ["--key k --scope-list", "--scope-list needs --scope"],
    ["--key k --secret-env SECRET", "--secret-env needs --webhook"],
    ["--key k --webhook w --secret-env EMPTY", "name of a variable"],
    ["--key k --webhook w --secret-env whsec_1", "name of a variable"],
  ])("refuses '%s'", async (line, message) => {
    const failure = await Promise.resolve()
      .then(() => parse(line).target)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UsageError);
    expect((failure as Error).message).toContain(message);
    expect((failure as Error).message).not.toContain("whsec_1");
  });
});

test.each([
  ["Semaphore", "Semaphore"],
  ["semaphore", "Semaphore"],
  ["read-write-lock", "ReadWriteLock"],
  ["ONCE", "once"],
])("kindOf(%s) is %s", (word, kind) => {
  expect(kindOf(word)).toBe(kind);
  expect(() => kindOf("lock")).toThrow(UsageError);
});
