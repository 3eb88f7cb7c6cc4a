import { parseExactJson } from "../idempotency/exact-json.ts";
import { bodyHash, bodyId, isObjectOrArray, jsonFields } from "./body.ts";
import { decodeHex } from "./encoding.ts";
import {
  entriesOf,
  isId,
  malformed,
  maxSignatures,
  requireHeader,
  requireId,
  requireSignature,
  type SignatureForm,
  signaturesOf,
} from "./header.ts";
import { requireForms } from "./option-checks.ts";
import { badSignature, WebhookVerificationError } from "./provider.ts";
import { algorithms, type SignatureAlgorithm } from "./signature-check.ts";
import { parseSeconds } from "./tolerance.ts";
import type { ReadSigned, SignedContent, SignedRequest } from "./verifier.ts";

/** Where a sender puts the time of signing: one of these. */
export interface HmacTime {
  /** A header with seconds since 1970, ten digits. `signedText` must contain `{time}`. */
  readonly header?: string | undefined;
  /** The one entry of the signature's header with this prefix, e.g. `t=`. Needs `separator`. Otherwise it is like a header. */
  readonly entry?: string | undefined;
  /** A field of the JSON body with ms since 1970, as a number. It is left out of the body's hash. */
  readonly field?: string | undefined;
}

/** Where a sender puts the event's id: one of these. */
export interface HmacId {
  /** A header, or the first that is present of several. The id counts as signed if `signedText` contains `{id}`. */
  readonly header?: string | readonly string[] | undefined;
  /** A field of the JSON body, or the body's hash if that field holds no id. */
  readonly field?: string | undefined;
}

/** Where a sender puts its signature, and the part that it covers. */
export interface Scheme {
  /** The header with the signature, e.g. `x-acme-signature`. */
  readonly header: string;
  /** Default `"HMAC-SHA256"`. */
  readonly algorithm?: SignatureAlgorithm | undefined;
  /** Decodes a signature, or gives `undefined` if it is not canonical. Default {@link decodeHex}. */
  readonly decode?: SignatureForm["decode"] | undefined;
  /** The text before each signature, e.g. `sha256=`. Default none. */
  readonly prefix?: string | undefined;
  /**
   * What separates the entries of a header that may hold several signatures, e.g. `,`. One signature that holds is
   * enough, and entries of other forms are skipped. More than 16 entries are refused. Default: the header is one
   * signature.
   */
  readonly separator?: string | undefined;
  /**
   * The signed text, e.g. `{id}.{time}.{body}`. It ends with `{body}`. `{id}` and `{time}` may each occur
   * once, and must if the signature covers them. The character behind `{id}` ends the id, so the sender must never use
   * it in an id: an id that contains it is refused, or a captured delivery could be split at another place. Default
   * `{body}`.
   */
  readonly signedText?: string | undefined;
  /** What `{url}` stands for in `signedText`. */
  readonly url?: ((request: Request) => string) | undefined;
  /**
   * Where the time of signing is, e.g. `{ header: "acme-time" }`. Deliveries outside `tolerance` are refused. Default:
   * the sender signs no time, and deliveries of any age are accepted.
   */
  readonly time?: HmacTime | undefined;
  /** Reads the time of a header or entry, in ms. Default {@link parseSeconds}. */
  readonly parseTime?: typeof parseSeconds | undefined;
  /**
   * Where the event's id is, e.g. `{ field: "event_id" }`. Default: the SHA-256 of the body, or, with `time.field`, of
   * the JSON without that field.
   */
  readonly id?: HmacId | undefined;
  /** A header that becomes `deliveryId`, or several of which the first with an id does. For logs. Default none. */
  readonly deliveryId?: string | readonly string[] | undefined;
  /**
   * Reads the scope of the id, e.g. `(request) => [requireId("acme", request, "acme-account")]`. It is called
   * after the signature was verified. Throw a `WebhookVerificationError` to refuse the delivery. An empty list or an
   * empty string is a `TypeError` of `verify`. Default: no scope.
   */
  readonly scope?: ((request: Request) => readonly string[]) | undefined;
}

type IdPlaces = Pick<Scheme, "id" | "deliveryId" | "signedText">;

/** Reads the signed text of a scheme. */
export function readerOf(name: string, scheme: Scheme): ReadSigned {
  const { header, signedText = "{body}", time, parseTime = parseSeconds } = scheme;
  // Texts and names by turns: "{id}.{body}" gives ["", "id", ".", "body", ""].
  const template = signedText.split(/\{(\w+)\}/);

  return (request, body) => {
    const { signatures, timeEntry } = readSignatures(name, scheme, request);
    const ids = readIds(name, scheme, request);
    const seconds = time?.header === undefined ? timeEntry : requireHeader(name, request, time.header);
    const url = scheme.url?.(request);
    const values: Readonly<Record<string, string | Uint8Array | undefined>> = {
      id: ids.id,
      time: seconds,
      url,
      body,
    };
    return {
      ...ids,
      signatures,
      signed: template.map((part, index) => (index % 2 === 0 ? part : (values[part] ?? ""))),
      timestamp: seconds === undefined ? undefined : parseTime(name, time?.header ?? header, seconds),
      url,
      async open() {
        if (url !== undefined && !isObjectOrArray(body))
          throw badSignature(name, "the body is no JSON object or array");
        return {
          ...(await openBody(scheme, body, ids.id)),
          scope: scheme.scope && requireForms("scope", scheme.scope(request)),
        };
      },
    };
  };
}

/** The signatures of the header, and the time among its entries. */
function readSignatures(
  name: string,
  { header, algorithm = "HMAC-SHA256", prefix = "", decode = decodeHex, separator, time }: Scheme,
  request: Request,
): { readonly signatures: readonly Uint8Array[]; readonly timeEntry?: string | undefined } {
  const form = { prefix, decode, length: algorithms[algorithm].signatureLength };
  if (separator === undefined) return { signatures: requireSignature(name, request, header, form) };
  const timePrefix = time?.entry;
  const entries = entriesOf(requireHeader(name, request, header), separator);
  const signatures = signaturesOf(entries, form);
  const times = entries.filter((entry) => timePrefix !== undefined && entry.startsWith(timePrefix));
  // Of two times, one could be the signed one and the other the one that is checked.
  const oneTime = timePrefix === undefined || times.length === 1;
  if (entries.length > maxSignatures || signatures.length === 0 || !oneTime) {
    const needed = timePrefix === undefined ? "" : `one ${timePrefix} and `;
    throw malformed(name, header, `is not ${needed}1 or more ${prefix}, at most ${maxSignatures} entries`);
  }
  return { signatures, timeEntry: times[0]?.slice(timePrefix!.length) };
}

/** What headers say of the ids. */
export function readIds(
  name: string,
  scheme: IdPlaces,
  request: Request,
): Pick<SignedRequest, "id" | "idSigned" | "deliveryId"> {
  const { deliveryId = [], signedText = "" } = scheme;
  const id = readId(name, scheme, request);
  return {
    id,
    idSigned: id === undefined || signedText.includes("{id}"),
    deliveryId: [deliveryId]
      .flat()
      .map((header) => request.headers.get(header))
      .find(isId),
  };
}

/** The id in a header, or undefined if there is none. */
function readId(name: string, { id, signedText = "" }: IdPlaces, request: Request): string | undefined {
  if (id?.header === undefined) return undefined;
  const headers = [id.header].flat();
  const present = headers.find((header) => request.headers.has(header));
  if (present === undefined) {
    throw new WebhookVerificationError(name, "missing-header", `no header ${headers.join(" or ")}`);
  }
  const value = requireId(name, request, present);
  const end = /\{id\}([^{])/.exec(signedText)?.[1];
  if (end !== undefined && value.includes(end)) throw malformed(name, present, `contains "${end}"`);
  return value;
}

/**
 * The id of a verified body: the time of sending, and the event's id unless it stood in a header. Without its time the
 * body names the event: a retry may carry a new time. A time that is missing or no number is NaN, which no tolerance
 * accepts.
 */
async function openBody(
  { time, id }: Scheme,
  body: Uint8Array,
  idOfHeader: string | undefined,
): Promise<SignedContent> {
  const idOf = (content: Uint8Array) =>
    id?.field === undefined ? bodyHash(content) : bodyId(content, id.field);
  if (time?.field === undefined) return { id: idOfHeader ?? (await idOf(body)) };
  // Two events that differ in a digit beyond JavaScript's are two.
  const { [time.field]: sent, ...event } = jsonFields(body, parseExactJson);
  const content = new TextEncoder().encode(JSON.stringify(event));
  return {
    timestamp: typeof sent === "number" ? sent : Number.NaN,
    id: idOfHeader ?? (await idOf(content)),
  };
}
