import { generateKeyPairSync, sign as signBytes } from "node:crypto";
import {
  discord,
  github,
  hubspot,
  lemonSqueezy,
  linear,
  meta,
  paddle,
  qstash,
  sendgrid,
  shopify,
  slack,
  square,
  standardWebhooks,
  stripe,
  twilio,
  twitch,
  zoom,
} from "../../../src/webhooks/index.ts";
import {
  at,
  bytes,
  claimsOf,
  hash,
  hmac,
  jwtOf,
  named,
  type Sender,
  secondsOf,
  url,
  whole,
} from "./sender.ts";

// How each sender signs, for the tests of what all providers have in common.

const ed25519Pairs = [generateKeyPairSync("ed25519"), generateKeyPairSync("ed25519")];
const ed25519Keys = ed25519Pairs.map(({ publicKey }) =>
  publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex"),
);
const p256Pairs = [1, 2].map(() => generateKeyPairSync("ec", { namedCurve: "P-256" }));
const p256Keys = p256Pairs.map(({ publicKey }) =>
  publicKey.export({ format: "der", type: "spki" }).toString("base64"),
);
const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey;
const generated = {
  secrets: ["0123456789abcdef", "fedcba9876543210"],
  badSecrets: ["", "0123456789abcdef\n"],
} as const;
const noTime = { tolerance: undefined, takesTolerance: false };

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
    secrets: [ed25519Keys[0]!, ed25519Keys[1]!],
    badSecrets: [
      "",
      ...[62, 63, 65, 66].map((digits) => "0".repeat(digits)),
      "g".repeat(64),
      `${"0".repeat(64)}\n`,
    ],
    sign(publicKey, time = at, text = '{"type":2,"id":"1234567890"}') {
      const { privateKey } = ed25519Pairs[ed25519Keys.indexOf(publicKey)]!;
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
  meta: {
    make: (secret, options) => meta({ secret, ...named(options) }),
    ...generated,
    sign(secret, _time, text = "{}") {
      const signature = `sha256=${hmac(secret, text).digest("hex")}`;
      return { headers: { "x-hub-signature-256": signature }, body: bytes(text) };
    },
    signatureHeader: "x-hub-signature-256",
    malformed: ["sha256=", "0".repeat(64), `sha1=${"0".repeat(40)}`],
    ...noTime,
    verified: { id: hash("{}"), idSigned: true },
  },
  "lemon squeezy": {
    make: (secret, options) => lemonSqueezy({ secret, ...named(options) }),
    secrets: ["any text", "another text"],
    badSecrets: [""],
    sign: (secret, _time, text = "{}") => ({
      headers: { "x-signature": hmac(secret, text).digest("hex") },
      body: bytes(text),
    }),
    signatureHeader: "x-signature",
    malformed: ["00", `sha256=${"0".repeat(64)}`, "A".repeat(64)],
    ...noTime,
    verified: { id: hash("{}"), idSigned: true },
  },
  paddle: {
    make: (secret, options) => paddle({ secret, ...options }),
    ...generated,
    sign(secret, time = at, text = '{"event_id":"evt_1","notification_id":"ntf_1"}') {
      const seconds = secondsOf(time);
      const signature = `ts=${seconds};h1=${hmac(secret, `${seconds}:${text}`).digest("hex")}`;
      return { headers: { "paddle-signature": signature }, body: bytes(text) };
    },
    signatureHeader: "paddle-signature",
    malformed: [
      "ts=1763714567",
      `h1=${"0".repeat(64)}`,
      `ts=x;h1=${"0".repeat(64)}`,
      `ts=1763714567,h1=${"0".repeat(64)}`,
    ],
    tolerance: 5_000,
    takesTolerance: true,
    verified: { id: "evt_1", timestamp: whole, idSigned: true },
  },
  square: {
    make: (secret, options) => square({ secret, url, ...named(options) }),
    ...generated,
    sign: (secret, _time, text = '{"event_id":"sq-1"}') => ({
      headers: { "x-square-hmacsha256-signature": hmac(secret, url + text).digest("base64") },
      body: bytes(text),
    }),
    signatureHeader: "x-square-hmacsha256-signature",
    malformed: ["AAAA", "0".repeat(64), `${"A".repeat(42)}B=`],
    ...noTime,
    verified: { id: "sq-1", idSigned: true },
  },
  twilio: {
    make: (secret, options) => twilio({ secret, ...named(options) }),
    ...generated,
    sign(secret, _time, text = "MessageSid=SM1&Body=hi") {
      // As Twilio's package joins them: in order, each once.
      const given = new URLSearchParams(`&${text}`);
      const fields = [...new Set(given.keys())]
        .sort()
        .flatMap((name) => [...new Set(given.getAll(name))].sort().map((value) => name + value))
        .join("");
      const signature = Buffer.from(hmac(secret, url + fields, "sha1").digest()).toString("base64");
      const headers = { "x-twilio-signature": signature, "i-twilio-idempotency-token": "t-1" };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-twilio-signature",
    malformed: ["AAAA", Buffer.alloc(32).toString("base64"), "0".repeat(40)],
    ...noTime,
    verified: { id: hash(`${url}BodyhiMessageSidSM1`), deliveryId: "t-1", idSigned: true },
  },
  hubspot: {
    make: (secret, options) => hubspot({ secret, ...options }),
    ...generated,
    sign(secret, time = at, text = '[{"eventId":7,"attemptNumber":0}]') {
      const signature = hmac(secret, `POST${url}${text}${time}`).digest("base64");
      const headers = { "x-hubspot-signature-v3": signature, "x-hubspot-request-timestamp": String(time) };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-hubspot-signature-v3",
    malformed: ["AAAA", "0".repeat(64), `${"A".repeat(42)}B=`],
    tolerance: 300_000,
    takesTolerance: true,
    verified: { id: hash(`POST${url}[{"eventId":7,}]`), timestamp: at, idSigned: true },
  },
  zoom: {
    make: (secret, options) => zoom({ secret, ...options }),
    ...generated,
    sign(secret, time = at, text = '{"event":"meeting.started"}') {
      const seconds = secondsOf(time);
      const signature = `v0=${hmac(secret, `v0:${seconds}:${text}`).digest("hex")}`;
      const headers = {
        "x-zm-signature": signature,
        "x-zm-request-timestamp": seconds,
        "x-zm-trackingid": "z-1",
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-zm-signature",
    malformed: ["v0=", "0".repeat(64), `v1=${"0".repeat(64)}`],
    tolerance: 300_000,
    takesTolerance: true,
    verified: {
      id: hash('{"event":"meeting.started"}'),
      timestamp: whole,
      deliveryId: "z-1",
      idSigned: true,
    },
  },
  twitch: {
    make: (secret, options) => twitch({ secret, ...options }),
    secrets: ["s3cre77890ab", "another secret"],
    badSecrets: ["", "too short", "x".repeat(101), "s3cre77890ab\n", "gehëimnis1234"],
    sign(secret, time = at, text = '{"event":{}}') {
      const signedAt = new Date(time).toISOString().replace("Z", "626Z");
      const headers = {
        "twitch-eventsub-message-id": "tw-1",
        "twitch-eventsub-message-timestamp": signedAt,
        "twitch-eventsub-message-signature": `sha256=${hmac(secret, `tw-1${signedAt}${text}`).digest("hex")}`,
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "twitch-eventsub-message-signature",
    malformed: ["sha256=", "0".repeat(64), `sha1=${"0".repeat(40)}`],
    tolerance: 600_000,
    takesTolerance: true,
    verified: { id: "tw-1", timestamp: at, idSigned: true },
  },
  qstash: {
    make: (secret, options) => qstash({ secret, id: "header", ...options }),
    ...generated,
    sign(secret, time = at, text = "{}") {
      const signature = jwtOf(secret, claimsOf(text, Number(secondsOf(time))));
      return {
        headers: { "upstash-signature": signature, "upstash-message-id": "msg_1" },
        body: bytes(text),
      };
    },
    signatureHeader: "upstash-signature",
    malformed: ["a.b", "a.b.c.d", "..", "e30.e30.", "e30..AAAA", "e30=.e30=.AAAA", "e3/.e30.AAAA"],
    tolerance: 10_000,
    takesTolerance: true,
    lifetime: 300_000,
    verified: { id: "msg_1", timestamp: whole, deliveryId: "msg_1", idSigned: false },
  },
  sendgrid: {
    make: (publicKey, options) => sendgrid({ publicKey, ...options }),
    secrets: [p256Keys[0]!, p256Keys[1]!],
    badSecrets: [
      "",
      "no key",
      p256Keys[0]!.slice(4),
      p256Keys[0]!.slice(0, -8),
      Buffer.from(`${Buffer.from(p256Keys[0]!, "base64").toString("latin1")}x`, "latin1").toString("base64"),
      p384.export({ format: "der", type: "spki" }).toString("base64"),
      generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" }).toString("base64"),
    ],
    sign(publicKey, time = at, text = "[{}]\r\n") {
      const { privateKey } = p256Pairs[p256Keys.indexOf(publicKey)]!;
      const seconds = secondsOf(time);
      const signature = signBytes("sha256", Buffer.from(seconds + text), privateKey).toString("base64");
      const headers = {
        "x-twilio-email-event-webhook-signature": signature,
        "x-twilio-email-event-webhook-timestamp": seconds,
      };
      return { headers, body: bytes(text) };
    },
    signatureHeader: "x-twilio-email-event-webhook-signature",
    malformed: ["AAAA", "0".repeat(64), Buffer.alloc(64, 1).toString("base64")],
    tolerance: undefined,
    takesTolerance: true,
    verified: { id: hash("[{}]\r\n"), timestamp: whole, idSigned: true },
  },
};
