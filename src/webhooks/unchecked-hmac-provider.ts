import { bodyHash, bodyId, jsonFields } from "./body.ts";
import { decodeBase64, decodeHex } from "./decode.ts";
import { deliveryIdIn, malformed, requireHeader, requireId } from "./header.ts";
import type { HmacProviderOptions } from "./hmac-options.ts";
import { requireForms } from "./option.ts";
import { type WebhookProvider, WebhookVerificationError } from "./provider.ts";
import { maxSignatures, requireSignature, type SignatureForm, signaturesOf } from "./signature.ts";
import type { SignedContent, SignedRequest } from "./signature-options.ts";
import { parseSignedText, type SignedText } from "./signed-text.ts";
import { parseSeconds } from "./tolerance.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";

/**
 * `hmacProvider` without the checks of how a sender signs. The built-in senders use it: a bundle with one of them then
 * leaves those checks out. What their users give is checked here.
 *
 * @throws {TypeError} `name` or a secret is empty, or `now` is not a function
 * @throws {RangeError} `tolerance` is out of range
 */
export function uncheckedHmacProvider(
  options: HmacProviderOptions,
  decode: SignatureForm["decode"] = options.encoding === "base64" ? decodeBase64 : decodeHex,
): WebhookProvider {
  const { name, algorithm = "HMAC-SHA256", secret, tagSecrets, tolerance, now } = options;
  const scheme = resolveScheme(options, decode);
  function read(request: Request, body: Uint8Array): SignedRequest {
    const { before, ...claims } = readHeaders(scheme, request);
    const idSigned = claims.id === undefined || scheme.signedText.coversId;
    const open = () => openBody(scheme, body, claims.id);
    return {
      ...claims,
      signed: [before, body],
      idSigned,
      open,
      ...deliveryIdIn(request, scheme.deliveryIdHeaders),
    };
  }

  return uncheckedSignatureProvider({ name, algorithm, key: secret, tagSecrets, tolerance, now, read });
}

/** Of signatures, in bytes. */
const lengths = { "HMAC-SHA1": 20, "HMAC-SHA256": 32, "HMAC-SHA512": 64 };

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

function resolveScheme(options: HmacProviderOptions, decode: SignatureForm["decode"]): HmacScheme {
  const { name, header, algorithm = "HMAC-SHA256", prefix = "" } = options;
  const { separator, signedText = "{body}", scope } = options;
  const time: Partial<Record<"header" | "entry" | "field", string>> = options.time ?? {};
  const id: { header?: string | readonly string[]; field?: string } = options.id ?? {};
  return {
    name,
    header,
    form: { prefix, decode, length: lengths[algorithm] },
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
  return { signatures, timeEntry: times[0]?.slice(timePrefix!.length) };
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
 * What a verified body says: the time of sending, and the event's id unless it stood in a header. Without its time the
 * body names the event: a retry may carry a new time. A time that is missing or no number is NaN, which no tolerance
 * accepts.
 */
async function openBody(
  { timeField, idField }: HmacScheme,
  body: Uint8Array,
  idOfHeader: string | undefined,
): Promise<SignedContent> {
  const fields = timeField === undefined ? {} : jsonFields(body);
  const { [timeField ?? ""]: time, ...event } = fields;
  const content = timeField === undefined ? body : new TextEncoder().encode(JSON.stringify(event));
  return {
    ...(timeField !== undefined && { timestamp: typeof time === "number" ? time : Number.NaN }),
    id: idOfHeader ?? (await (idField === undefined ? bodyHash(content) : bodyId(content, idField))),
  };
}
