import { sha256 } from "../runtime/bytes.ts";
import { isObjectOrArray } from "../webhooks/body.ts";
import { decoders, signatureProvider } from "../webhooks/custom/signature-provider.ts";
import { decodeBase64, decodeBase64Url, encodeBytes } from "../webhooks/encoding.ts";
import type { Scheme } from "../webhooks/scheme.ts";
import { hubspot } from "../webhooks/senders/hubspot.ts";
import { qstash } from "../webhooks/senders/qstash.ts";
import { shopify } from "../webhooks/senders/shopify.ts";
import { decodeKeys, standardWebhooks } from "../webhooks/senders/standard-webhooks.ts";
import { twilio } from "../webhooks/senders/twilio.ts";
import type { Key, SignedParts } from "../webhooks/signature-check.ts";

export interface Draft {
  readonly options: SigningOptions;
  readonly body: string;
  readonly url: string;
  readonly timestamp: number;
}

export interface SigningOptions {
  readonly secret?: string | readonly string[];
  readonly key?: Key | readonly Key[];
  readonly privateKey?: CryptoKey;
  readonly url?: unknown;
  readonly now?: () => number;
  readonly topics?: string | readonly string[];
  readonly headerPrefix?: string | readonly string[];
  readonly encoding?: keyof typeof decoders;
}

export type Described = Partial<Omit<Scheme, "url" | "scope">>;

export interface Oddity extends Described {
  /** Default: `privateKey`, or the first secret. */
  readonly signsWith?: Key | CryptoKey;
  readonly headers?: Readonly<Record<string, string>>;
  readonly contentType?: string;
  readonly address?: string;
  readonly choose?: (signed: SignedParts) => SignedParts;
}

type Odd = (draft: Draft) => Oddity | Promise<Oddity>;

const senders = new Map<unknown, Odd>([
  [
    hubspot,
    () => ({
      header: "x-hubspot-signature-v3",
      decode: decodeBase64,
      time: { header: "x-hubspot-request-timestamp" },
      parseTime: (_provider, _header, time) => Number(time),
    }),
  ],
  [qstash, ofQstash],
  [
    shopify,
    ({ options: { topics = "orders/create" } }) => ({
      headers: {
        "shopify-shop-domain": "test.myshopify.com",
        "shopify-topic": [topics].flat()[0]!,
      },
    }),
  ],
  [signatureProvider, ({ options: { encoding = "hex" } }) => ({ decode: decoders[encoding] })],
  [standardWebhooks, ofStandardWebhooks],
  [twilio, ofTwilio],
]);

export async function oddityOf(sender: unknown, draft: Draft): Promise<Oddity> {
  return (await senders.get(sender)?.(draft)) ?? {};
}

/** The header is a JWT, and the signature its last part. */
async function ofQstash({ body, url, timestamp }: Draft): Promise<Oddity> {
  const seconds = Math.floor(timestamp / 1_000);
  const hash = encodeBytes(await sha256(new TextEncoder().encode(body)), "base64url");
  const claims = {
    iss: "Upstash",
    sub: url,
    exp: seconds + 300,
    nbf: seconds,
    iat: seconds,
    jti: crypto.randomUUID(),
    body: `${hash}=`,
  };
  const parts = [{ alg: "HS256", typ: "JWT" }, claims].map((part) =>
    encodeBytes(new TextEncoder().encode(JSON.stringify(part)), "base64url"),
  );
  return { header: "upstash-signature", prefix: `${parts.join(".")}.`, decode: decodeBase64Url };
}

function ofStandardWebhooks({ options }: Draft): Oddity {
  const { privateKey, headerPrefix = "webhook" } = options;
  const prefix = [headerPrefix].flat()[0]!;
  return {
    header: `${prefix}-signature`,
    decode: decodeBase64,
    id: { header: `${prefix}-id` },
    time: { header: `${prefix}-timestamp` },
    ...(privateKey
      ? { algorithm: "Ed25519", prefix: "v1a,", signsWith: privateKey }
      : { prefix: "v1,", signsWith: decodeKeys("secret", options.secret)[0]! }),
  };
}

/** A form, or JSON whose hash is in the URL. */
async function ofTwilio({ body, url }: Draft): Promise<Oddity> {
  const bytes = new TextEncoder().encode(body);
  const common: Oddity = {
    header: "x-twilio-signature",
    decode: decodeBase64,
    algorithm: "HMAC-SHA1",
    choose: (signed) => (signed as readonly string[])[0]!,
  };
  if (!isObjectOrArray(bytes)) return { ...common, contentType: "application/x-www-form-urlencoded" };
  if (url.includes("bodySHA256=")) return common;
  const hash = encodeBytes(await sha256(bytes), "hex");
  return { ...common, address: `${url}${url.includes("?") ? "&" : "?"}bodySHA256=${hash}` };
}
