import { readFileSync } from "node:fs";
import type { VerifiedWebhook, WebhookProvider } from "../../../src/webhooks/index.ts";
import * as webhooks from "../../../src/webhooks/index.ts";

/** A genuine delivery of a sender, and what is special of that sender. A row of vectors.json. */
export interface Vector {
  /** The function that makes its provider. */
  readonly sender: string;
  /** Who signed the delivery. */
  readonly from: string;
  /** The options that the sender needs, with the secret or public key that the delivery is signed for. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Another secret or public key of the right form, and some of a wrong form. */
  readonly other: string;
  readonly badSecrets: readonly string[];
  /** How far the signed time may be in the past and in the future, in ms. Absent: any age is accepted. */
  readonly tolerance?: number;
  /** Times in the future are not compared: the sender's own library does not. */
  readonly anyFuture?: boolean;
  /** How long the sender itself lets a delivery be accepted, in ms, besides the tolerance. */
  readonly lifetime: number;
  /** Headers that are not signed and may be absent, and those that are not signed and must be there. */
  readonly optional: readonly string[];
  readonly unsigned: readonly string[];
  /** The header that is the id with `id: "header"`. Absent: there is no such option, or it has no default. */
  readonly idHeader?: string;
  /** Wrong values of the first header, which has the signature. */
  readonly malformed: readonly string[];
  /** When it was signed, in ms. */
  readonly now: number;
  readonly url: string;
  /** The first is the one with the signature, unless its name says that another is. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly verified: VerifiedWebhook;
}

type Shared = Partial<Vector> & { readonly deliveries: readonly Partial<Vector>[] };

const file: Readonly<Record<string, Shared>> = JSON.parse(
  readFileSync(new URL("vectors.json", import.meta.url), "utf8"),
);
const defaults = { badSecrets: [], lifetime: 0, optional: [], unsigned: [], malformed: [] };
const more = { now: 1_763_714_567_000, url: "https://example.com/hooks" };

export const vectors: readonly Vector[] = Object.entries(file).flatMap(
  ([sender, { deliveries, ...shared }]) =>
    deliveries.map((delivery) => ({ ...defaults, ...more, sender, ...shared, ...delivery }) as Vector),
);

/** The first delivery of a sender. */
export function vectorOf(sender: string): Vector {
  return vectors.find((vector) => vector.sender === sender)!;
}

/** A sender's provider, made as from JavaScript, without types. */
export function make(sender: string, options: unknown): WebhookProvider {
  return (webhooks as unknown as Record<string, (options: unknown) => WebhookProvider>)[sender]!(options);
}

/** The option with the secret or public key, and its value. */
export function keyOf({ options }: Vector): readonly ["secret" | "publicKey", string] {
  const option = "publicKey" in options ? "publicKey" : "secret";
  return [option, options[option] as string];
}

/** The provider of a delivery, at the time at which it was signed. */
export function providerOf(vector: Vector, options: object = {}, now = () => vector.now): WebhookProvider {
  return make(vector.sender, {
    ...vector.options,
    ...(vector.verified.timestamp !== undefined && { now }),
    ...options,
  });
}
