import { generateKeyPairSync, sign as signBytes } from "node:crypto";
import * as webhooks from "../../../src/webhooks/index.ts";
import {
  hubspot,
  lemonSqueezy,
  meta,
  paddle,
  qstash,
  sendgrid,
  square,
  twilio,
  twitch,
  type WebhookProvider,
  zoom,
} from "../../../src/webhooks/index.ts";
import { at, bytes, hash, hmac, named, type Sender, secondsOf, url, whole } from "./senders.ts";

const pairs = [1, 2].map(() => generateKeyPairSync("ec", { namedCurve: "P-256" }));
const publicKeys = pairs.map(({ publicKey }) =>
  publicKey.export({ format: "der", type: "spki" }).toString("base64"),
);
const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" }).publicKey;
const base64url = (text: string) => Buffer.from(text).toString("base64url");

/** A JWT as QStash makes it. */
export function jwtOf(
  secret: string,
  claims: Record<string, unknown>,
  head: object = { alg: "HS256", typ: "JWT" },
): string {
  const signed = `${base64url(JSON.stringify(head))}.${base64url(JSON.stringify(claims))}`;
  return `${signed}.${hmac(secret, signed).digest("base64url")}`;
}

/** The claims of QStash's JWT for a body. */
export function claimsOf(text: string, seconds: number) {
  const body = `${Buffer.from(hash(text), "hex").toString("base64url")}=`;
  return { iss: "Upstash", sub: url, nbf: seconds, iat: seconds, exp: seconds + 300, jti: "jwt_1", body };
}

const generated = {
  secrets: ["0123456789abcdef", "fedcba9876543210"],
  badSecrets: ["", "0123456789abcdef\n"],
} as const;
const noTime = { tolerance: undefined, takesTolerance: false };

/** The senders of 2026. */
export const moreSenders: Record<string, Sender> = {
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
    secrets: [publicKeys[0]!, publicKeys[1]!],
    badSecrets: [
      "",
      "no key",
      publicKeys[0]!.slice(4),
      publicKeys[0]!.slice(0, -8),
      Buffer.from(`${Buffer.from(publicKeys[0]!, "base64").toString("latin1")}x`, "latin1").toString(
        "base64",
      ),
      p384.export({ format: "der", type: "spki" }).toString("base64"),
      generateKeyPairSync("ed25519").publicKey.export({ format: "der", type: "spki" }).toString("base64"),
    ],
    sign(publicKey, time = at, text = "[{}]\r\n") {
      const { privateKey } = pairs[publicKeys.indexOf(publicKey)]!;
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

/** A provider, called as from JavaScript, without types. */
export function makerOf(title: string): (options: unknown) => WebhookProvider {
  const name = title.replace(/ ./, (text) => text.slice(1).toUpperCase());
  return (webhooks as unknown as Record<string, (options: unknown) => WebhookProvider>)[name]!;
}

/** The options that a provider needs. */
export function leastOptions(title: string, { secrets: [secret] }: Sender): object {
  if (title === "discord" || title === "sendgrid") return { publicKey: secret };
  return { secret, ...(title === "square" && { url }), ...(title === "qstash" && { id: "header" }) };
}
