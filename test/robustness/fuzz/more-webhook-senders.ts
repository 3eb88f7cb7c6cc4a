import { createHash, createHmac, generateKeyPairSync, sign } from "node:crypto";
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

/** A delivery as its sender signed it. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** How a sender signs, and what its provider makes of it. */
export interface Sender {
  readonly provider: WebhookProvider;
  /** Headers that the signature does not cover. */
  readonly unsigned: readonly string[];
  /** Whether several bodies have one signature: they must then have one id. */
  readonly spellings?: boolean;
  /** How far off the signed time may be, in seconds; absent where no time is signed. */
  readonly tolerance?: number;
  /** The signature's header, the text before it, and its encoding. */
  readonly signature: readonly [header: string, scheme: string, encoding: "hex" | "base64" | "base64url"];
  sign(id: string, seconds: number, body: Uint8Array<ArrayBuffer>): Delivery;
  /** The delivery's id, where that is not the one given to `sign`. */
  idOf?(body: Uint8Array): string;
}

export const url = "https://example.com/hooks";
export const now = 1_763_714_567_890;
const clock = () => now;
const secret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** The key of SendGrid's provider. */
export const p256Key: string = keys.publicKey.export({ format: "der", type: "spki" }).toString("base64");

const hmac = (algorithm: string, ...parts: (string | Uint8Array)[]) =>
  createHmac(algorithm, secret).update(Buffer.concat(parts.map((part) => Buffer.from(part as string))));
const hashOf = (text: string | Uint8Array) => createHash("sha256").update(text).digest("hex");
const fieldsOf = (body: Uint8Array) => {
  const fields = new URLSearchParams(`&${Buffer.from(body).toString("utf8")}`);
  const names = [...new Set(fields.keys())].sort();
  return names
    .flatMap((name) => [...new Set(fields.getAll(name))].sort().map((value) => name + value))
    .join("");
};

export const moreSenders: Record<string, Sender> = {
  meta: {
    provider: meta({ secret }),
    unsigned: [],
    signature: ["x-hub-signature-256", "sha256=", "hex"],
    sign: (_id, _seconds, body) => ({
      headers: { "x-hub-signature-256": `sha256=${hmac("sha256", body).digest("hex")}` },
      body,
    }),
    idOf: hashOf,
  },
  "lemon squeezy": {
    provider: lemonSqueezy({ secret }),
    unsigned: [],
    signature: ["x-signature", "", "hex"],
    sign: (_id, _seconds, body) => ({
      headers: { "x-signature": hmac("sha256", body).digest("hex") },
      body,
    }),
    idOf: hashOf,
  },
  paddle: {
    provider: paddle({ secret, now: clock }),
    unsigned: [],
    tolerance: 5,
    signature: ["paddle-signature", "h1=", "hex"],
    sign(_id, seconds, body) {
      const signature = hmac("sha256", `${seconds}:`, body).digest("hex");
      return { headers: { "paddle-signature": `ts=${seconds};h1=${signature}` }, body };
    },
    idOf: hashOf,
  },
  square: {
    provider: square({ secret, url }),
    unsigned: [],
    signature: ["x-square-hmacsha256-signature", "", "base64"],
    sign: (_id, _seconds, body) => ({
      headers: { "x-square-hmacsha256-signature": hmac("sha256", url, body).digest("base64") },
      body,
    }),
    idOf: hashOf,
  },
  twilio: {
    provider: twilio({ secret }),
    unsigned: [],
    spellings: true,
    signature: ["x-twilio-signature", "", "base64"],
    sign: (_id, _seconds, body) => ({
      headers: { "x-twilio-signature": hmac("sha1", url + fieldsOf(body)).digest("base64") },
      body,
    }),
    idOf: (body) => hashOf(url + fieldsOf(body)),
  },
  hubspot: {
    provider: hubspot({ secret, now: clock }),
    unsigned: [],
    tolerance: 300,
    signature: ["x-hubspot-signature-v3", "", "base64"],
    sign(_id, seconds, body) {
      const text = JSON.stringify([{ text: Buffer.from(body).toString("latin1") }]);
      const time = String(seconds * 1_000).padStart(13, "0");
      const headers = {
        "x-hubspot-signature-v3": hmac("sha256", `POST${url}${text}${time}`).digest("base64"),
        "x-hubspot-request-timestamp": time,
      };
      return { headers, body: new TextEncoder().encode(text) };
    },
    idOf: (body) => hashOf(`POST${url}${Buffer.from(body).toString("utf8")}`),
  },
  zoom: {
    provider: zoom({ secret, now: clock }),
    unsigned: ["x-zm-trackingid"],
    tolerance: 300,
    signature: ["x-zm-signature", "v0=", "hex"],
    sign(id, seconds, body) {
      const signature = `v0=${hmac("sha256", `v0:${seconds}:`, body).digest("hex")}`;
      const headers = {
        "x-zm-request-timestamp": String(seconds),
        "x-zm-signature": signature,
        "x-zm-trackingid": id,
      };
      return { headers, body };
    },
    idOf: hashOf,
  },
  twitch: {
    provider: twitch({ secret, now: clock }),
    unsigned: [],
    tolerance: 600,
    signature: ["twitch-eventsub-message-signature", "sha256=", "hex"],
    sign(id, seconds, body) {
      const time = new Date(seconds * 1_000).toISOString().replace("Z", "234567Z");
      const headers = {
        "twitch-eventsub-message-id": id,
        "twitch-eventsub-message-timestamp": time,
        "twitch-eventsub-message-signature": `sha256=${hmac("sha256", id, time, body).digest("hex")}`,
      };
      return { headers, body };
    },
  },
  qstash: {
    provider: qstash({ secret, id: "header", url, now: clock }),
    unsigned: ["upstash-message-id"],
    // Valid for 150 s in both directions, and 10 s for the clocks.
    tolerance: 160,
    signature: ["upstash-signature", ".", "base64url"],
    sign(id, seconds, body) {
      const digest = createHash("sha256").update(body).digest("base64url");
      const claims = { iss: "Upstash", sub: url, nbf: seconds - 150, exp: seconds + 150, body: `${digest}=` };
      const parts = [{ alg: "HS256", typ: "JWT" }, claims].map((part) => Buffer.from(JSON.stringify(part)));
      const signed = parts.map((part) => part.toString("base64url")).join(".");
      const signature = `${signed}.${hmac("sha256", signed).digest("base64url")}`;
      return { headers: { "upstash-signature": signature, "upstash-message-id": id }, body };
    },
  },
  sendgrid: {
    provider: sendgrid({ publicKey: p256Key, now: clock, tolerance: 300_000 }),
    unsigned: [],
    tolerance: 300,
    signature: ["x-twilio-email-event-webhook-signature", "", "base64"],
    sign(_id, seconds, body) {
      const content = Buffer.concat([Buffer.from(String(seconds)), body]);
      const headers = {
        "x-twilio-email-event-webhook-signature": sign("sha256", content, keys.privateKey).toString("base64"),
        "x-twilio-email-event-webhook-timestamp": String(seconds),
      };
      return { headers, body };
    },
    idOf: hashOf,
  },
};
