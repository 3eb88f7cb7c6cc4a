import { parseTime } from "../../runtime/runtime.ts";
import { decodeBase64, decodeDer, decodeHex, decodePublicKey } from "../encoding.ts";
import { malformed } from "../header.ts";
import { chosen, requireForm } from "../option-checks.ts";
import type { IdOptions, PublicKeyOptions, SecretOptions, ToleranceOptions, UrlOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { sender } from "../sender.ts";

// The table of senders: a function for each, whose row says how it signs. To add one, add its function here, its vectors
// to test/unit/webhooks/vectors.json, and its line to docs/senders.md. Senders that no row describes have a file beside
// this one, and export themselves in ../index.ts.

/** Of a time that is checked only if the user gives a tolerance: the sender names none. */
const anyAge = Number.POSITIVE_INFINITY;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/**
 * Discord's interactions and webhook events: `X-Signature-Ed25519` signs the time in `X-Signature-Timestamp` and the
 * body. The id is the body's `id`, which interactions have, or else the hash of the body: webhook events have no id.
 * Discord names no tolerance, so none is applied unless you give one.
 *
 * Discord waits 3 s for an answer. It retries webhook events for up to 10 minutes. For interactions it publishes
 * nothing.
 *
 * @param options `publicKey`: the application's, 64 hex digits
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = discord({ publicKey: env.DISCORD_PUBLIC_KEY });
 * const { id, timestamp } = await provider.verify(request, body);
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
 * GitHub's webhooks: `X-Hub-Signature-256` is the hex HMAC-SHA256 of the body. The id is the body's hash, or with
 * `id: "header"` `X-GitHub-Delivery`. Some events have equal bodies when they happen again, such as a member who is removed
 * twice, and then count as one: docs/senders.md lists them. `deliveryId` is `X-GitHub-Delivery`. GitHub signs no time.
 * The older `X-Hub-Signature` (SHA-1) is ignored.
 *
 * GitHub waits 10 s for an answer and does not retry by itself. A redelivery by hand or through its API keeps the
 * body and the delivery id. Several webhooks may send an event in equal bodies: give each of them its own name.
 *
 * @param options `secret`: the webhook's, any text without a line break at its ends
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const { id } = await provider.verify(request, body);
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
 * Lemon Squeezy's webhooks: `X-Signature` is the hex HMAC-SHA256 of the body. Neither an id nor a time is signed. The id
 * is the body's hash. `X-Event-Name` is not signed: the event's name is in the body, `meta.event_name`.
 *
 * Lemon Squeezy accepts only 200, and retries after 5, 25 and 125 s.
 *
 * @param options `secret`: the webhook's signing secret, any text without a line break at its ends
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = lemonSqueezy({ secret: env.LEMON_SQUEEZY_SECRET });
 * const { id } = await provider.verify(request, body);
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
 * Linear's webhooks: `Linear-Signature` is the hex HMAC-SHA256 of the body. The signed time is the body's
 * `webhookTimestamp`. The id is the hash of the body without that, which is the time of sending, or with `id: "header"`
 * `Linear-Delivery`. `deliveryId` is `Linear-Delivery`.
 *
 * Linear waits 5 s for an answer, accepts only 200, and retries after 1 minute, 1 hour and 6 hours.
 *
 * @param options `secret`: the webhook's signing secret. `tolerance`: default 60 000 (one minute)
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = linear({ secret: env.LINEAR_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
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
 * Meta's webhooks (WhatsApp, Messenger, Instagram, Pages): `X-Hub-Signature-256` is the hex HMAC-SHA256 of the body.
 * Meta signs neither an id nor a time. The id is the body's hash. The older `X-Hub-Signature` (SHA-1) is ignored. Meta
 * asks for the URL's confirmation with a GET: see `metaChallenge`.
 *
 * A delivery may contain several messages, which another delivery may repeat in another batch: where one message must
 * be handled once, use its `id` in a run of its own.
 *
 * @param options `secret`: the app secret
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = meta({ secret: env.META_APP_SECRET });
 * const { id } = await provider.verify(request, body);
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
 * Paddle Billing's notifications: `Paddle-Signature` holds the time `ts` and one or several signatures `h1`, each the
 * hex HMAC-SHA256 of `ts:body`. One `h1` that holds is enough. The id is the body's `event_id`, which a replay has,
 * too, under another `notification_id`. Paddle Classic signs in another way and is refused.
 *
 * Paddle waits 5 s for an answer, accepts only 200, and retries 60 times within 3 days.
 *
 * @param options `secret`: the notification destination's secret key, `pdl_ntfset_…`. `tolerance`: how far the time may be
 * in the past, default 5 000. As in Paddle's own library, a time in the future is not compared, so a clock of yours that is
 * slow refuses nothing
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = paddle({ secret: env.PADDLE_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
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
 * SendGrid's Event Webhook: `X-Twilio-Email-Event-Webhook-Signature` is the ECDSA signature (P-256, DER, base64) of the
 * time in `X-Twilio-Email-Event-Webhook-Timestamp` and the body. No id is signed for a delivery, which is a list of
 * events. The id is the body's hash. An event may come again in another list: where one event must be handled once, use
 * its `sg_event_id` in a run of its own. SendGrid names no tolerance, so none is applied unless you give one.
 *
 * @param options `publicKey`: the webhook's verification key, base64 with or without the lines of a PEM
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = sendgrid({ publicKey: env.SENDGRID_PUBLIC_KEY });
 * const { id, timestamp } = await provider.verify(request, body);
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

/** What an SPKI has in front of a point on P-256: the algorithm, the curve, and that both coordinates follow. */
const p256 = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE";

/** A public key whose SPKI says that it is a point on P-256, not compressed. */
function decodeP256(text: string): Uint8Array {
  const spki = decodePublicKey(text);
  if (spki.length === 91 && btoa(String.fromCharCode(...spki.subarray(0, 27))) === p256) return spki;
  throw new TypeError("publicKey must be a key on P-256 (is it the right variable, and all of it?)");
}

/**
 * Slack's requests: `X-Slack-Signature` is `v0=` and the hex HMAC-SHA256 of `v0:time:body`, with the time from
 * `X-Slack-Request-Timestamp`. The id is the body's `event_id`, or else the hash of the body: the bodies of slash
 * commands and interactions differ by an id of their own, and `url_verification` gets one answer each time.
 *
 * Slack waits 3 s for an answer and sends an event three more times: at once, after 1 minute and after 5 minutes.
 *
 * @param options `secret`: the app's signing secret
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = slack({ secret: env.SLACK_SIGNING_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
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
 * Square's webhooks: `x-square-hmacsha256-signature` is the base64 HMAC-SHA256 of the notification URL and the body. The
 * id is the body's `event_id`. Square signs no time of sending. The older `x-square-signature` (SHA-1) is ignored.
 *
 * @param options `secret`: the subscription's signature key. `url`: its notification URL, exactly as Square shows it.
 * Required, because nothing separates URL and body in the signed text: the request must not decide where the body begins
 * @throws {TypeError} at once: an option is unknown, missing or not of its form
 *
 * @example
 * const provider = square({ secret: env.SQUARE_SIGNATURE_KEY, url: "https://shop.example/webhooks/square" });
 * const { id } = await provider.verify(request, body);
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
 * Stripe's events, snapshot and thin: `Stripe-Signature` holds the time `t` and one or several signatures `v1`, each
 * the hex HMAC-SHA256 of `t.body`. One `v1` that holds is enough. Other schemes are skipped. The id is the body's `id`.
 * Stricter than Stripe's library, which accepts any time in the future and reads some headers leniently.
 *
 * Stripe retries for up to 3 days. How long it waits for an answer is not published.
 *
 * @param options `secret`: the endpoint's signing secret, which is used as it is, including `whsec_`
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = stripe({ secret: env.STRIPE_WEBHOOK_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
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
 * Twitch's EventSub: `Twitch-Eventsub-Message-Signature` is `sha256=` and the hex HMAC-SHA256 of the id in
 * `Twitch-Eventsub-Message-Id`, the time in `Twitch-Eventsub-Message-Timestamp` and the body. The id is the message's,
 * which is signed and does not change when Twitch sends it again. `Twitch-Eventsub-Message-Type` is not signed: the body
 * of a challenge has a `challenge`, which is the answer, and the body of an event has an `event`.
 *
 * Twitch waits a few seconds for an answer, and revokes subscriptions whose answers are late too often.
 *
 * @param options `secret`: of your subscriptions, 10 to 100 ASCII characters. `tolerance`: default 600 000 (10 minutes)
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = twitch({ secret: env.TWITCH_EVENTSUB_SECRET });
 * const { id, timestamp } = await provider.verify(request, body);
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
 * A time such as `2023-07-19T14:56:51.634234626Z`, in ms. In exactly this form, nothing of id or body can be read as a
 * part of the time, nor the reverse: nothing separates them in the signed text.
 */
function parseUtc(name: string, header: string, time: string): number {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(time);
  if (!match) throw malformed(name, header, "is not a time in UTC");
  const [, seconds, fraction = ""] = match;
  return parseTime(`${seconds}.${fraction.slice(0, 3).padEnd(3, "0")}Z`);
}

/**
 * Zoom's webhooks: `x-zm-signature` is `v0=` and the hex HMAC-SHA256 of `v0:time:body`, with the time from
 * `x-zm-request-timestamp`. Zoom signs no id. The id is the body's hash. `deliveryId` is `x-zm-trackingid`. Zoom asks
 * for the URL's confirmation, also every 72 hours: see `zoomChallenge`.
 *
 * Zoom waits 3 s for an answer and retries after 5, 25 and 85 minutes. It does not publish whether a retry has a new
 * time: if retries are refused with `outside-tolerance`, set `tolerance` to 2 hours.
 *
 * @param options `secret`: the app's secret token
 * @throws {TypeError} at once: an option is unknown or not of its form
 *
 * @example
 * const provider = zoom({ secret: env.ZOOM_SECRET_TOKEN });
 * const { id, timestamp } = await provider.verify(request, body);
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
