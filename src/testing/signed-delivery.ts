import { checkOptions, number, type Schema, typed, wrongType } from "../check/check.ts";
import { systemRuntime } from "../runtime/runtime.ts";
import { decodeHex } from "../webhooks/encoding.ts";
import type { WebhookProvider } from "../webhooks/provider.ts";
import type { Row } from "../webhooks/sender.ts";
import { twilio } from "../webhooks/senders/twilio.ts";
import { algorithms, type Key, type SignatureAlgorithm } from "../webhooks/signature-check.ts";
import { parseSeconds } from "../webhooks/tolerance.ts";
import type { Verifier } from "../webhooks/verifier.ts";
import { type Described, type Draft, type Oddity, oddityOf, type SigningOptions } from "./odd-senders.ts";
import { encode, placeholder, sign, spellTime } from "./signing.ts";

/** The delivery's own parts. */
export interface DeliveryContent {
  /**
   * An object is sent as JSON, to `twilio` as a form, with the id and time that this sender puts into the body. A
   * string is sent unchanged. Default `{}`.
   */
  readonly body?: string | object | undefined;
  /** The event's id. Default: the one in `body`, else a random one. */
  readonly id?: string | undefined;
  /** When it is signed, in ms since 1970. Default: the option `now`, else the platform's clock. */
  readonly timestamp?: number | undefined;
  /**
   * The URL that the sender calls. Default: the option `url` if it is a string, else `https://example.com/webhooks`.
   */
  readonly url?: string | undefined;
  /** Further headers. They replace the delivery's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const contentOptions: Schema<DeliveryContent> = {
  body(name, value: unknown) {
    if (typeof value !== "string" && (Object(value) !== value || ArrayBuffer.isView(value))) {
      throw wrongType(name, value, "an object or a string");
    }
  },
  id: typed("string"),
  timestamp: number(0, 8.64e15, "ms"),
  url: typed("string"),
  headers: typed("object"),
};

/** A delivery. `fetch`, `new Request` and Hono's `app.request` take it as their second argument. */
export interface SignedDelivery {
  readonly url: string;
  readonly method: "POST";
  /** In lower case. */
  readonly headers: Record<string, string>;
  readonly body: string;
}

/**
 * Signs a delivery as its sender does, for tests of your handlers. Send it again for a duplicate.
 *
 * @typeParam Sender the type of `sender`, from which the type of `options` follows
 * @param sender the function of `redlock-edge/webhooks` that your handler uses, or `signatureProvider`
 * @param options your handler's. The first of several secrets signs. Senders with a private key need `privateKey`: see
 * {@link keyPairFor}
 * @throws {TypeError} an option is wrong, the sender has no id but you gave one, or `signatureProvider` has `read`
 *
 * @example
 * const delivery = await signedDelivery(stripe, { secret: "whsec_test" }, { body: { type: "invoice.paid" } });
 * const response = await app.request("/webhooks/stripe", delivery);
 * const again = await app.request("/webhooks/stripe", delivery);
 * expect(again.headers.get("idempotent-replayed")).toBe("true");
 */
export async function signedDelivery<Sender extends (options: never) => WebhookProvider>(
  sender: Sender,
  options: Parameters<Sender>[0] & { readonly privateKey?: CryptoKey },
  content: DeliveryContent = {},
): Promise<SignedDelivery> {
  if (typeof sender !== "function")
    throw wrongType(
      "sender",
      sender,
      "the function of a sender, not called: signedDelivery(stripe, { secret })",
    );
  // A string may be the secret.
  if (Object(options) !== options) {
    throw new TypeError("options must be an object, as in signedDelivery(stripe, { secret })");
  }
  checkOptions("signedDelivery", content, contentOptions);
  const { privateKey: _, ...own } = options as SigningOptions;
  const provider = sender(own as never) as Verifier & { readonly row?: Row };
  const base: Described = provider.row ?? (own as Described);
  const url = content.url ?? (typeof own.url === "string" ? own.url : "https://example.com/webhooks");
  const timestamp = content.timestamp ?? (own.now ?? systemRuntime.now)();
  const body = bodyOf(content, { base, timestamp, isForm: (sender as unknown) === twilio });
  const draft: Draft = { options, body, url, timestamp };
  const scheme: SigningScheme = { ...base, ...(await oddityOf(sender, draft)) };
  refuseUnused(provider, scheme, content);
  return send(provider, scheme, { ...content, ...draft });
}

type SigningScheme = Oddity & Pick<Row, "tolerance">;

function bodyOf(
  { body = {}, id, timestamp: given }: DeliveryContent,
  { base, timestamp, isForm }: { base: Described; timestamp: number; isForm: boolean },
): string {
  const [idField, timeField] = [base.id?.field, base.time?.field];
  if (typeof body === "string" || Array.isArray(body)) {
    const place = (id !== undefined && idField) || (given !== undefined && timeField);
    if (place) throw new TypeError(`"${place}" is a field of the body: write it there, or give an object`);
    return typeof body === "string" ? body : JSON.stringify(body);
  }
  if (isForm) return String(new URLSearchParams({ ...body }));
  return JSON.stringify({
    ...(idField !== undefined && { [idField]: crypto.randomUUID() }),
    ...body,
    ...(idField !== undefined && id !== undefined && { [idField]: id }),
    ...(timeField !== undefined && { [timeField]: timestamp }),
  });
}

function refuseUnused(provider: WebhookProvider, scheme: SigningScheme, content: DeliveryContent): void {
  const { name } = provider;
  if (scheme.header === undefined) {
    throw new TypeError(`${name} reads signatures by code of its own: sign its deliveries yourself`);
  }
  if (content.id !== undefined && scheme.id?.field === undefined && idHeaderOf(scheme) === undefined) {
    throw new TypeError(`${name} sends no id: the id of a delivery is the hash of its body`);
  }
  if (content.timestamp !== undefined && scheme.time === undefined && scheme.tolerance === undefined) {
    throw new TypeError(`${name} signs no time`);
  }
}

function idHeaderOf({ id, deliveryId = [] }: SigningScheme): string | undefined {
  return [id?.header ?? (id?.field === undefined ? deliveryId : [])].flat()[0];
}

/** Asks the sender's own verifier for the signed text, with a wrong signature, and puts the right one there. */
async function send(
  provider: Verifier,
  scheme: SigningScheme,
  content: DeliveryContent & Draft,
): Promise<SignedDelivery> {
  const { options, body, id = crypto.randomUUID() } = content;
  const { address: url = content.url, algorithm = "HMAC-SHA256", decode = decodeHex, choose } = scheme;
  const idHeader = idHeaderOf(scheme);
  const headers = {
    "content-type": scheme.contentType ?? "application/json",
    ...(idHeader !== undefined && { [idHeader]: id }),
    ...scheme.headers,
    ...content.headers,
  };
  const signed = (signature: Uint8Array): SignedDelivery => ({
    url,
    method: "POST",
    headers: lowerCased({
      ...signatureHeaders(scheme, content.timestamp, encode(signature, decode)),
      ...headers,
    }),
    body,
  });
  const draft = signed(placeholder(algorithm));
  const bytes = new TextEncoder().encode(body);
  const request = new Request(url, { method: "POST", headers: draft.headers });
  const read = await provider.read(request, bytes);
  const key = scheme.signsWith ?? keyOf(provider.name, algorithm, options);
  return signed(await sign(algorithm, key, choose?.(read.signed) ?? read.signed));
}

function signatureHeaders(
  scheme: SigningScheme,
  timestamp: number,
  signature: string,
): Record<string, string> {
  const { header = "", prefix = "", separator = "", time, parseTime = parseSeconds } = scheme;
  const isInHeaders = time?.header !== undefined || time?.entry !== undefined;
  const text = isInHeaders ? spellTime(timestamp, parseTime) : "";
  const entries = time?.entry === undefined ? [] : [time.entry + text];
  return {
    ...(time?.header !== undefined && { [time.header]: text }),
    [header]: [...entries, prefix + signature].join(separator),
  };
}

function keyOf(
  name: string,
  algorithm: SignatureAlgorithm,
  { privateKey, secret, key }: SigningOptions,
): Key | CryptoKey {
  const isSecret = algorithms[algorithm].name === "HMAC";
  const [first] = [(isSecret ? (secret ?? key) : privateKey) ?? []].flat();
  if (first) return first;
  throw new TypeError(`${name} signs with a private key: privateKey is missing (see keyPairFor)`);
}

/** Of two names that differ in case, the later counts. */
function lowerCased(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}
