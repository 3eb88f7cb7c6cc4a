import { parseTime } from "../../runtime/runtime.ts";
import { decodeBase64, decodeDer, decodeHex, decodePublicKey } from "../encoding.ts";
import { malformed } from "../header.ts";
import { chosen, requireForm } from "../option-checks.ts";
import type { IdOptions, PublicKeyOptions, SecretOptions, ToleranceOptions, UrlOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { sender } from "../sender.ts";

// To add a sender, add its function here, its vectors to test/unit/webhooks/vectors.json, and its line to
// docs/senders.md. Senders that no row describes have a file beside this one.

/** For senders that name no tolerance. */
const anyAge = Number.POSITIVE_INFINITY;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/**
 * Discord's interactions and webhook events. The id is the body's `id`, else its hash. Deliveries of any age are
 * accepted unless you set `tolerance`.
 *
 * @param options `publicKey`: the application's, 64 hex digits
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = discord({ publicKey: env.DISCORD_PUBLIC_KEY });
 */
export function discord(options: PublicKeyOptions & ToleranceOptions): WebhookProvider {
  return sender("discord", options, {
    retries: 10 * minute,
    algorithm: "Ed25519",
    publicKey: (text) => decodeHex(requireForm("publicKey", text, /^[0-9a-f]{64}$/i))!,
    header: "x-signature-ed25519",
    signedText: "{time}{body}",
    time: { header: "x-signature-timestamp" },
    tolerance: anyAge,
    id: { field: "id" },
  });
}

/**
 * GitHub's webhooks. The id is the body's hash, so events with equal bodies count as one (docs/senders.md), or
 * `X-GitHub-Delivery` with `id: "header"`. If several webhooks send an event, give each its own `name`.
 *
 * @param options `secret`: any text without a line break at its ends
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 */
export function github(options: SecretOptions & IdOptions): WebhookProvider {
  return sender("github", options, {
    secret: chosen,
    header: "x-hub-signature-256",
    prefix: "sha256=",
    deliveryId: "x-github-delivery",
    idOption: "optional",
    // "Payloads are capped at 25 MB": https://docs.github.com/en/webhooks/webhook-events-and-payloads
    maxBody: 25 * 1024 * 1024,
  });
}

/**
 * Lemon Squeezy's webhooks. The id is the body's hash. `X-Event-Name` is not signed: read the body's `meta.event_name`.
 *
 * @param options `secret`: any text without a line break at its ends
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = lemonSqueezy({ secret: env.LEMON_SQUEEZY_SECRET });
 */
export function lemonSqueezy(options: SecretOptions): WebhookProvider {
  return sender("lemonSqueezy", options, {
    retries: 155_000,
    name: "lemon-squeezy",
    secret: chosen,
    header: "x-signature",
  });
}

/**
 * Linear's webhooks. The id is the hash of the body without `webhookTimestamp`, or `Linear-Delivery` with `id:
 * "header"`.
 *
 * @param options `tolerance`: default 60 000 (one minute)
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = linear({ secret: env.LINEAR_WEBHOOK_SECRET });
 */
export function linear(options: SecretOptions & IdOptions & ToleranceOptions): WebhookProvider {
  return sender("linear", options, {
    retries: minute + hour + 6 * hour,
    header: "linear-signature",
    time: { field: "webhookTimestamp" },
    tolerance: 60_000,
    deliveryId: "linear-delivery",
    idOption: "optional",
  });
}

/**
 * Webhooks of WhatsApp, Messenger, Instagram and Pages. The id is the body's hash. If a message must be handled once,
 * run under its own `id`, because it may come again in another delivery.
 *
 * @param options `secret`: the app secret
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = meta({ secret: env.META_APP_SECRET });
 */
export function meta(options: SecretOptions): WebhookProvider {
  return sender("meta", options, {
    // WhatsApp's. The others do not retry for longer.
    retries: 7 * day,
    header: "x-hub-signature-256",
    prefix: "sha256=",
  });
}

/**
 * Paddle Billing's notifications, not Paddle Classic's. The id is the body's `event_id`, which a replay keeps.
 *
 * @param options `secret`: the destination's, `pdl_ntfset_…`. `tolerance`: for times in the past, default 5 000. As in
 * Paddle's library, times in the future are accepted
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = paddle({ secret: env.PADDLE_WEBHOOK_SECRET });
 */
export function paddle(options: SecretOptions & ToleranceOptions): WebhookProvider {
  return sender("paddle", options, {
    retries: 3 * day,
    header: "paddle-signature",
    prefix: "h1=",
    separator: ";",
    signedText: "{time}:{body}",
    time: { entry: "ts=" },
    tolerance: 5_000,
    anyFuture: true,
    id: { field: "event_id" },
  });
}

/**
 * SendGrid's Event Webhook. The id is the body's hash. If an event must be handled once, run under its `sg_event_id`,
 * because it may come again in another delivery. Deliveries of any age are accepted unless you set `tolerance`.
 *
 * @param options `publicKey`: base64, with or without the lines of PEM
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = sendgrid({ publicKey: env.SENDGRID_PUBLIC_KEY });
 */
export function sendgrid(options: PublicKeyOptions & ToleranceOptions): WebhookProvider {
  return sender("sendgrid", options, {
    retries: day,
    algorithm: "ECDSA-P256-SHA256",
    publicKey: decodeP256,
    header: "x-twilio-email-event-webhook-signature",
    decode: (text) => decodeDer(decodeBase64(text)),
    signedText: "{time}{body}",
    time: { header: "x-twilio-email-event-webhook-timestamp" },
    tolerance: anyAge,
  });
}

/** The algorithm, the curve, and that both coordinates follow. */
const p256 = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE";

function decodeP256(text: string): Uint8Array {
  const spki = decodePublicKey(text);
  if (spki.length === 91 && btoa(String.fromCharCode(...spki.subarray(0, 27))) === p256) return spki;
  throw new TypeError("publicKey must be a key on P-256 (is it the right variable, and all of it?)");
}

/**
 * Slack's requests. The id is the body's `event_id`, else its hash.
 *
 * @param options `secret`: the app's signing secret
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = slack({ secret: env.SLACK_SIGNING_SECRET });
 */
export function slack(options: SecretOptions & ToleranceOptions): WebhookProvider {
  return sender("slack", options, {
    retries: 6 * minute,
    header: "x-slack-signature",
    prefix: "v0=",
    signedText: "v0:{time}:{body}",
    time: { header: "x-slack-request-timestamp" },
    tolerance: 300_000,
    id: { field: "event_id" },
  });
}

/**
 * Square's webhooks. The id is the body's `event_id`.
 *
 * @param options `url`: the notification URL, exactly as Square shows it. Required, because nothing separates URL and
 * body in the signed text: a request must not decide where its body begins
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = square({ secret: env.SQUARE_SIGNATURE_KEY, url: "https://shop.example/webhooks/square" });
 */
export function square(options: SecretOptions & Required<UrlOptions>): WebhookProvider {
  return sender("square", options, {
    retries: day,
    header: "x-square-hmacsha256-signature",
    decode: decodeBase64,
    signedText: "{url}{body}",
    url: "required",
    id: { field: "event_id" },
  });
}

/**
 * Stripe's events, snapshot and thin. The id is the body's `id`. Unlike Stripe's library, it refuses times in the
 * future beyond `tolerance`.
 *
 * @param options `secret`: the endpoint's, including `whsec_`
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = stripe({ secret: env.STRIPE_WEBHOOK_SECRET });
 */
export function stripe(options: SecretOptions & ToleranceOptions): WebhookProvider {
  return sender("stripe", options, {
    retries: 3 * day,
    secret: /^whsec_[^\s,;|]+$/,
    header: "stripe-signature",
    prefix: "v1=",
    separator: ",",
    signedText: "{time}.{body}",
    time: { entry: "t=" },
    tolerance: 300_000,
    id: { field: "id" },
  });
}

/**
 * Twitch's EventSub. The id is the signed `Twitch-Eventsub-Message-Id`. `Twitch-Eventsub-Message-Type` is not signed: a
 * body with `challenge` is a challenge.
 *
 * @param options `secret`: 10 to 100 ASCII characters. `tolerance`: default 600 000 (10 minutes)
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = twitch({ secret: env.TWITCH_EVENTSUB_SECRET });
 */
export function twitch(options: SecretOptions & ToleranceOptions): WebhookProvider {
  return sender("twitch", options, {
    secret: /^[\x20-\x7e]{10,100}$/,
    header: "twitch-eventsub-message-signature",
    prefix: "sha256=",
    signedText: "{id}{time}{body}",
    time: { header: "twitch-eventsub-message-timestamp" },
    parseTime: parseUtc,
    tolerance: 600_000,
    id: { header: "twitch-eventsub-message-id" },
  });
}

/**
 * A time such as `2023-07-19T14:56:51.634234626Z`. Nothing separates id, time and body in the signed text, so only a
 * strict form keeps digits from moving between them.
 */
function parseUtc(name: string, header: string, time: string): number {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(time);
  if (!match) throw malformed(name, header, "is not a time in UTC");
  const [, seconds, fraction = ""] = match;
  return parseTime(`${seconds}.${fraction.slice(0, 3).padEnd(3, "0")}Z`);
}

/**
 * Zoom's webhooks. The id is the body's hash. If retries are refused with `outside-tolerance`, set `tolerance` to 2
 * hours.
 *
 * @param options `secret`: the app's secret token
 * @throws {TypeError} an option is wrong
 *
 * @example
 * const provider = zoom({ secret: env.ZOOM_SECRET_TOKEN });
 */
export function zoom(options: SecretOptions & ToleranceOptions): WebhookProvider {
  return sender("zoom", options, {
    retries: 85 * minute,
    header: "x-zm-signature",
    prefix: "v0=",
    signedText: "v0:{time}:{body}",
    time: { header: "x-zm-request-timestamp" },
    tolerance: 300_000,
    deliveryId: "x-zm-trackingid",
  });
}
