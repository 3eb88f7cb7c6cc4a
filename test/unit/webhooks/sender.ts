import { createHash, createHmac } from "node:crypto";
import type { ToleranceOptions, WebhookProvider } from "../../../src/webhooks/index.ts";
import * as webhooks from "../../../src/webhooks/index.ts";

// What the tests know of a sender, and what signing needs.

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

export const whole = Math.floor(at / 1_000) * 1_000;
export const secondsOf = (time: number) => String(Math.floor(time / 1_000));

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
