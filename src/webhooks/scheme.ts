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
  /** A header with ten digits of seconds since 1970. `signedText` must contain `{time}`. */
  readonly header?: string | undefined;
  /**
   * The prefix of the time's entry in the signature's header, e.g. `t=`. Needs `separator`, and `{time}` in
   * `signedText`.
   */
  readonly entry?: string | undefined;
  /** A field of the JSON body with ms since 1970. It is left out of the body's hash. */
  readonly field?: string | undefined;
}

/** Where a sender puts the event's id: one of these. */
export interface HmacId {
  /** A header, or several of which the first that is present counts. Signed if `signedText` contains `{id}`. */
  readonly header?: string | readonly string[] | undefined;
  /** A field of the JSON body, else the body's hash. */
  readonly field?: string | undefined;
}

export interface Scheme {
  /** The header with the signature, e.g. `x-acme-signature`. */
  readonly header: string;
  /** Default `"HMAC-SHA256"`. */
  readonly algorithm?: SignatureAlgorithm | undefined;
  readonly decode?: SignatureForm["decode"] | undefined;
  /** The text before each signature, e.g. `sha256=`. Default none. */
  readonly prefix?: string | undefined;
  /**
   * Separates the signatures of a header with several, e.g. `,`. One that holds is enough. At most 16 entries. Default:
   * the header is one signature.
   */
  readonly separator?: string | undefined;
  /**
   * The signed text, which ends with `{body}`, e.g. `{id}.{time}.{body}`. The character behind `{id}` ends the id: an
   * id that contains it is refused, because a captured delivery could be split at another place. Default `{body}`.
   */
  readonly signedText?: string | undefined;
  readonly url?: ((request: Request) => string) | undefined;
  /** Where the time of signing is, e.g. `{ header: "acme-time" }`. Default: deliveries of any age are accepted. */
  readonly time?: HmacTime | undefined;
  readonly parseTime?: typeof parseSeconds | undefined;
  /** Where the event's id is, e.g. `{ field: "event_id" }`. Default: the SHA-256 of the body, without `time.field`. */
  readonly id?: HmacId | undefined;
  /** A header that becomes `deliveryId`, or several of which the first with an id does. Default none. */
  readonly deliveryId?: string | readonly string[] | undefined;
  /**
   * Reads the scope of the id after the signature was verified, e.g. `(request) => [requireId("acme", request,
   * "acme-account")]`. Throw a `WebhookVerificationError` to refuse the delivery. Default: no scope.
   */
  readonly scope?: ((request: Request) => readonly string[]) | undefined;
}

type IdPlaces = Pick<Scheme, "id" | "deliveryId" | "signedText">;

export function readerOf(name: string, scheme: Scheme): ReadSigned {
  const { header, signedText = "{body}", time, parseTime = parseSeconds } = scheme;
  // "{id}.{body}" becomes ["", "id", ".", "body", ""].
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
  // Of two times, one could be signed and the other one checked.
  const oneTime = timePrefix === undefined || times.length === 1;
  if (entries.length > maxSignatures || signatures.length === 0 || !oneTime) {
    const needed = timePrefix === undefined ? "" : `one ${timePrefix} and `;
    throw malformed(name, header, `is not ${needed}1 or more ${prefix}, at most ${maxSignatures} entries`);
  }
  return { signatures, timeEntry: times[0]?.slice(timePrefix!.length) };
}

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

/** A retry may carry a new time, so the hash leaves it out. A missing time is NaN, which no tolerance accepts. */
async function openBody(
  { time, id }: Scheme,
  body: Uint8Array,
  idOfHeader: string | undefined,
): Promise<SignedContent> {
  const idOf = (content: Uint8Array) =>
    id?.field === undefined ? bodyHash(content) : bodyId(content, id.field);
  if (time?.field === undefined) return { id: idOfHeader ?? (await idOf(body)) };
  // Two events may differ only in a digit that JavaScript's numbers lose.
  const { [time.field]: sent, ...event } = jsonFields(body, parseExactJson);
  const content = new TextEncoder().encode(JSON.stringify(event));
  return {
    timestamp: typeof sent === "number" ? sent : Number.NaN,
    id: idOfHeader ?? (await idOf(content)),
  };
}
