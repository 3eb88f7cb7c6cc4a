import { bodyHash, bodyId, jsonFields } from "./body.ts";
import { decodeBase64, decodeHex } from "./decode.ts";
import { deliveryIdIn, malformed, requireHeader, requireId } from "./header.ts";
import type { HmacProviderOptions } from "./hmac-options.ts";
import { requireForm, requireForms } from "./option.ts";
import { requireBytes, type WebhookProvider, WebhookVerificationError } from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import {
  badSignature,
  maxSignatures,
  requireSignature,
  type SignatureForm,
  signatureCheck,
  signaturesOf,
} from "./signature.ts";
import { parseSignedText, type SignedText } from "./signed-text.ts";
import { parseSeconds, toleranceCheck } from "./tolerance.ts";

/**
 * `hmacProvider` without the checks of how a sender signs. The built-in senders use it: a bundle with one of them then
 * leaves those checks out. What their users give is checked here.
 *
 * @throws {TypeError} `name` or a secret is empty, or `now` is not a function
 * @throws {RangeError} `tolerance` is out of range
 */
export function uncheckedHmacProvider(options: HmacProviderOptions): WebhookProvider {
  const { secret, tagSecrets = true } = options;
  const name = requireForm("name", options.name);
  const secrets = typeof secret === "string" || secret instanceof Uint8Array ? [secret] : secret;
  const scheme = resolveScheme(options);
  const check = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(tagSecrets, secrets);
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

/** How a sender signs, with every default filled in. */
interface HmacScheme {
  readonly name: string;
  readonly header: string;
  readonly form: SignatureForm;
  readonly separator: string | undefined;
  readonly signedText: SignedText;
  readonly timeHeader: string | undefined;
  readonly timeEntry: string | undefined;
  readonly timeField: string | undefined;
  readonly idHeaders: readonly string[] | undefined;
  readonly idField: string | undefined;
  readonly deliveryIdHeaders: readonly string[];
  readonly scope: HmacProviderOptions["scope"];
}

function resolveScheme(options: HmacProviderOptions): HmacScheme {
  const { name, header, encoding, prefix = "", separator, signedText = "{body}", scope } = options;
  const time: Partial<Record<"header" | "entry" | "field", string>> = options.time ?? {};
  const id: { header?: string | readonly string[]; field?: string } = options.id ?? {};
  return {
    name,
    header,
    form: { prefix, decode: encoding === "base64" ? decodeBase64 : decodeHex, length: 32 },
    separator,
    signedText: parseSignedText(signedText),
    timeHeader: time.header,
    timeEntry: time.entry,
    timeField: time.field,
    idHeaders: id.header === undefined ? undefined : [id.header].flat(),
    idField: id.field,
    deliveryIdHeaders: [options.deliveryId ?? []].flat(),
    scope,
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
