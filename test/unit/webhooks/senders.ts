import { createHash, createHmac, generateKeyPairSync, sign as signBytes } from "node:crypto";
import {
  discord,
  github,
  linear,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  type ToleranceOptions,
  type WebhookProvider,
} from "../../../src/webhooks/index.ts";

// How each sender signs, for the tests of what all providers have in common.

/** Where the deliveries are sent to; some senders sign it. */
export const url = "https://example.com/hooks";
export const at = 1_763_714_567_890;
export const bytes = (text: string) => new TextEncoder().encode(text);
export const hmac = (secret: string | Uint8Array, content: string | Uint8Array, algorithm = "sha256") =>
  createHmac(algorithm, secret).update(content);

export const hash = (text: string) => createHash("sha256").update(text).digest("hex");

export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** The options that providers accept whose senders sign no time. */
export const named = ({ name }: { readonly name?: string } = {}) => (name === undefined ? {} : { name });

export interface Sender {
  make(secret: string | readonly string[], options?: ToleranceOptions & { name?: string }): WebhookProvider;
  /** Two valid secrets, and values that set-up refuses. */
  readonly secrets: readonly [string, string];
  readonly badSecrets: readonly string[];
  /** Signs an event that happened at `time`, with one of the secrets. */
  sign(secret: string, time?: number, text?: string): Delivery;
  /** The header with the signature, and malformed values of it. */
  readonly signatureHeader: string;
  readonly malformed: readonly string[];
  /** In ms; undefined where no time is signed or none is checked by default. */
  readonly tolerance: number | undefined;
  readonly takesTolerance: boolean;
  /** How long the sender lets a delivery be accepted, in ms, besides the tolerance. Default 0. */
  readonly lifetime?: number;
  /** The event that is signed, as verified. */
  readonly verified: Readonly<Record<string, unknown>>;
}

const pairs = [generateKeyPairSync("ed25519"), generateKeyPairSync("ed25519")];
const publicKeys = pairs.map(({ publicKey }) =>
  publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex"),
);
export const whole = Math.floor(at / 1_000) * 1_000;
export const secondsOf = (time: number) => String(Math.floor(time / 1_000));

export const senders: Record<string, Sender> = {
  github: {
    make: (secret, options) => github({ secret, ...named(options) }),
    secrets: ["It's a Secret to Everybody", "another secret"],
    badSecrets: [""],
    sign(secret, _time, text = "{}") {
      const signature = `sha256=${hmac(secret, text).digest("hex")}`;
      return { headers: { "x-hub-signature-256": signature, "x-github-delivery": "d-1" }, body: bytes(text) };
    },
    signatureHeader: "x-hub-signature-256",
    malformed: ["sha256=", "0".repeat(64), `sha1=${"0".repeat(64)}`],
    tolerance: undefined,
    takesTolerance: false,
    verified: { id: hash("{}"), deliveryId: "d-1", idSigned: true },
  },
  "standard webhooks": {
    make: (secret, options) => standardWebhooks({ secret, ...options }),
    secrets: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `whsec_${Buffer.alloc(32, 7).toString("base64")}`],
    badSecrets: ["", "whsec_", "whsec_short", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"],
    sign(secret, time = at, text = "{}") {
      const seconds = secondsOf(time);
      const key = Buffer.from(secret.slice(6), "base64");
      const signature = `v1,${hmac(key, `msg_1.${seconds}.${text}`).digest("base64")}`;
      const headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": seconds,
        "webhook-signature": signature,
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "webhook-signature",
    malformed: ["v1,", "v2,AAAA", "x"],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: "msg_1", timestamp: whole, idSigned: true },
  },
  stripe: {
    make: (secret, options) => stripe({ secret, ...options }),
    secrets: ["whsec_test_secret", "whsec_8f742231b10e8888"],
    badSecrets: ["", "whsec_", "sk_test_51", "whsec_test_secret\n", " whsec_test_secret"],
    sign(secret, time = at, text = '{"id":"evt_1","object":"event"}') {
      const seconds = secondsOf(time);
      const signature = `t=${seconds},v1=${hmac(secret, `${seconds}.${text}`).digest("hex")}`;
      return { headers: { "stripe-signature": signature }, body: bytes(text) };
    },
    signatureHeader: "stripe-signature",
    malformed: ["t=1763714567", `v1=${"0".repeat(64)}`, `t=x,v1=${"0".repeat(64)}`, "t=1763714567,v1=00"],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: "evt_1", timestamp: whole, idSigned: true },
  },
  slack: {
    make: (secret, options) => slack({ secret, ...options }),
    secrets: ["8f742231b10e8888abcd99yyyzzz85a5", "00000000000000000000000000000001"],
    badSecrets: ["", "8f742231b10e8888abcd99yyyzzz85a5\n", "a b"],
    sign(secret, time = at, text = '{"type":"event_callback","event_id":"Ev1"}') {
      const seconds = secondsOf(time);
      const signature = `v0=${hmac(secret, `v0:${seconds}:${text}`).digest("hex")}`;
      const headers = { "x-slack-signature": signature, "x-slack-request-timestamp": seconds };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-slack-signature",
    malformed: ["v0=", "0".repeat(64), `v1=${"0".repeat(64)}`, `v0=${"A".repeat(64)}`],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: "Ev1", timestamp: whole, idSigned: true },
  },
  shopify: {
    make: (secret, options) => shopify({ secret, topics: ["orders/paid"], ...named(options) }),
    secrets: ["shpss_0123456789abcdef", "shpss_fedcba9876543210"],
    badSecrets: ["", "shpss_0123456789abcdef\n"],
    sign(secret, _time, text = "{}") {
      const headers = {
        "x-shopify-hmac-sha256": hmac(secret, text).digest("base64"),
        "x-shopify-webhook-id": "w-1",
        "x-shopify-topic": "orders/paid",
        "x-shopify-shop-domain": "a.myshopify.com",
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-shopify-hmac-sha256",
    malformed: ["AAAA", "0".repeat(64), `${"A".repeat(42)}B=`],
    tolerance: undefined,
    takesTolerance: false,
    verified: { id: hash("{}"), deliveryId: "w-1", scope: ["orders/paid"], idSigned: true },
  },
  linear: {
    make: (secret, options) => linear({ secret, ...options }),
    secrets: ["lin_wh_0123456789", "lin_wh_9876543210"],
    badSecrets: ["", "lin_wh_0123456789\r\n"],
    sign(secret, time = at, text = JSON.stringify({ action: "update", webhookTimestamp: time })) {
      const headers = { "linear-signature": hmac(secret, text).digest("hex"), "linear-delivery": "l-1" };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "linear-signature",
    malformed: ["00", "x".repeat(64), `sha256=${"0".repeat(64)}`],
    tolerance: 60_000,
    takesTolerance: true,
    verified: { id: hash('{"action":"update"}'), deliveryId: "l-1", timestamp: at, idSigned: true },
  },
  discord: {
    make: (publicKey, options) => discord({ publicKey, ...options }),
    secrets: [publicKeys[0]!, publicKeys[1]!],
    badSecrets: [
      "",
      ...[62, 63, 65, 66].map((digits) => "0".repeat(digits)),
      "g".repeat(64),
      `${"0".repeat(64)}\n`,
    ],
    sign(publicKey, time = at, text = '{"type":2,"id":"1234567890"}') {
      const { privateKey } = pairs[publicKeys.indexOf(publicKey)]!;
      const seconds = secondsOf(time);
      const signature = signBytes(null, Buffer.from(seconds + text), privateKey).toString("hex");
      const headers = { "x-signature-ed25519": signature, "x-signature-timestamp": seconds };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-signature-ed25519",
    malformed: ["00", "0".repeat(64), "A".repeat(128)],
    tolerance: undefined,
    takesTolerance: true,
    verified: { id: "1234567890", timestamp: whole, idSigned: true },
  },
};
