import { checkNames, checkType } from "../check.ts";
import { bodyHash, bodyId, jsonFields } from "./body.ts";
import { deliveryIdIn, malformed, requireHeader, requireId } from "./header.ts";
import {
  type HmacProviderOptions,
  type HmacScheme,
  hmacOptionNames,
  requireSecrets,
  resolveScheme,
} from "./hmac-options.ts";
import { requireForm, requireForms } from "./option.ts";
import { requireBytes, type WebhookProvider, WebhookVerificationError } from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, maxSignatures, requireSignature, signatureCheck, signaturesOf } from "./signature.ts";
import { parseSeconds, toleranceCheck } from "./tolerance.ts";

/**
 * Makes a provider for a sender that signs with HMAC-SHA256 and a shared secret, and puts the signature into a header.
 * GitHub, Linear, Shopify, Slack and Stripe are made with it.
 *
 * `verify` reads the headers, compares the time, checks the signature in constant time with each secret, and looks
 * into the body only after that. A sender that signs in another way (another hash, a public key, text behind the body)
 * needs a `verify` of its own: see `signatureCheck`.
 *
 * @throws {TypeError} at once: an option is unknown, missing or not of its form; `signedText` contradicts `id` or
 * `time`; `tolerance` or `now` is given without `time`
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * // acme-signature: sha256=…, of the time in acme-time, a dot and the body, whose event_id is the event's id
 * const provider = hmacProvider({
 *   name: "acme",
 *   secret: env.ACME_SECRET,
 *   header: "acme-signature",
 *   prefix: "sha256=",
 *   signedText: "{time}.{body}",
 *   time: { header: "acme-time" },
 *   id: { field: "event_id" },
 * });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function hmacProvider(options: HmacProviderOptions): WebhookProvider {
  checkNames("hmacProvider", options, hmacOptionNames);
  const { tagSecrets = true } = options;
  const name = requireForm("name", options.name);
  const secrets = requireSecrets(options.secret);
  const scheme = resolveScheme(name, options);
  const check = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(checkType("tagSecrets", tagSecrets, "boolean"), secrets);
  const checkTolerance = toleranceCheck(name, options, 300_000);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const claims = readHeaders(scheme, request);
      if (claims.timestamp !== undefined) checkTolerance(claims.timestamp);
      if (!(await check(claims.signatures, body, claims.before))) throw badSignature(name);

      const { sentAt, content } = splitBody(body, scheme.timeField);
      if (sentAt !== undefined) checkTolerance(sentAt);
      const timestamp = claims.timestamp ?? sentAt;
      return {
        id: claims.id ?? (await contentId(content, scheme.idField)),
        idSigned: claims.id === undefined || scheme.signedText.coversId,
        ...(timestamp !== undefined && { timestamp }),
        ...(claims.scope && { scope: claims.scope }),
        ...deliveryIdIn(request, scheme.deliveryIdHeaders),
        ...(await tags()),
      };
    },
  };
}

/** What the headers say, before anything of it was verified. */
interface Claims {
  readonly signatures: readonly Uint8Array[];
  /** What was signed in front of the body. */
  readonly before: string;
  readonly id: string | undefined;
  readonly timestamp: number | undefined;
  readonly scope: readonly string[] | undefined;
}

function readHeaders(scheme: HmacScheme, request: Request): Claims {
  const { name, header, timeHeader, idHeaders } = scheme;
  const { signatures, timeEntry } = readSignatures(scheme, request);
  const scope = scheme.scope && requireForms("scope", scheme.scope(request));
  const id = idHeaders && readId(scheme, request, idHeaders);
  const time = timeHeader === undefined ? timeEntry : requireHeader(name, request, timeHeader);
  const timestamp = time === undefined ? undefined : parseSeconds(name, timeHeader ?? header, time);
  return { signatures, before: scheme.signedText.before({ id, time }), id, timestamp, scope };
}

/** The signatures of the header, and the time among its entries. */
function readSignatures(
  { name, header, form, separator, timeEntry: timePrefix }: HmacScheme,
  request: Request,
): { readonly signatures: readonly Uint8Array[]; readonly timeEntry?: string | undefined } {
  if (separator === undefined) return { signatures: requireSignature(name, request, header, form) };
  const entries = requireHeader(name, request, header).split(separator);
  const signatures = signaturesOf(entries, form);
  const times = entries.filter((entry) => timePrefix !== undefined && entry.startsWith(timePrefix));
  // Of two times, one could be the signed one and the other the one that is checked.
  const oneTime = timePrefix === undefined || times.length === 1;
  if (entries.length > maxSignatures || signatures.length === 0 || !oneTime) {
    const time = timePrefix === undefined ? "" : `one ${timePrefix} and `;
    throw malformed(name, header, `is not ${time}1 or more ${form.prefix}, at most ${maxSignatures} entries`);
  }
  return { signatures, timeEntry: times[0]?.slice(timePrefix?.length) };
}

function readId({ name, signedText }: HmacScheme, request: Request, headers: readonly string[]): string {
  const present = headers.find((header) => request.headers.has(header));
  if (present === undefined) {
    throw new WebhookVerificationError(name, "missing-header", `no header ${headers.join(" or ")}`);
  }
  const id = requireId(name, request, present);
  const { idEnd } = signedText;
  if (idEnd !== undefined && id.includes(idEnd)) throw malformed(name, present, `contains "${idEnd}"`);
  return id;
}

/**
 * A verified body's time of sending, and what remains without it. The remainder names the event: a retry may carry a
 * new time. A time that is missing or no number is NaN, which no tolerance accepts.
 */
function splitBody(
  body: Uint8Array,
  timeField: string | undefined,
): { readonly sentAt?: number; readonly content: Uint8Array } {
  if (timeField === undefined) return { content: body };
  const { [timeField]: time, ...event } = jsonFields(body);
  const sentAt = typeof time === "number" ? time : Number.NaN;
  return { sentAt, content: new TextEncoder().encode(JSON.stringify(event)) };
}

function contentId(content: Uint8Array, idField: string | undefined): Promise<string> {
  return idField === undefined ? bodyHash(content) : bodyId(content, idField);
}
