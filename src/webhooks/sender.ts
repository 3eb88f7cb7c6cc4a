import { checkOptions, later } from "../check/check.ts";
import { generated, requireForm, requireForms, urlOption } from "./option-checks.ts";
import type { IdOptions, PublicKeyOptions, SecretOptions, ToleranceOptions, UrlOptions } from "./options.ts";
import { readerOf, readIds, type Scheme } from "./scheme.ts";
import { type Key, type SignatureAlgorithm, type SignatureCheck, signatureCheck } from "./signature-check.ts";
import { type ReadSigned, type SignedRequest, type Verifier, verifier } from "./verifier.ts";

/** How a sender signs, and which options its users have besides `secret` and `name`. */
export type Row = {
  /** The provider's name, unless its user gives another. Default: the name of the sender's function. */
  readonly name?: string;
  /** The form of its secrets. Default: no white space. */
  readonly secret?: RegExp;
  /** Its users give a public key instead of a secret. This function decodes it. */
  readonly publicKey?: (text: string) => Uint8Array;
  /** It signs the time. Its users have `tolerance`, of which this is the default, in ms, and `now`. */
  readonly tolerance?: number;
  /** Times in the future are not compared, because the sender's own libraries do not. */
  readonly anyFuture?: boolean;
  /** It signs the URL. Its users have, or must give, `url`. */
  readonly url?: "optional" | "required";
  /** The place of the event's id. See {@link Scheme}. */
  readonly id?: Scheme["id"];
  /** A header that is not signed, or several of which the first counts. See {@link Scheme}. */
  readonly deliveryId?: Scheme["deliveryId"];
  /** Its users have, or must give, `id`: whether `deliveryId` is the id. The default is the one in the body. */
  readonly idOption?: "optional" | "required";
  /** Checks signatures. Default: by `algorithm`. */
  readonly check?: (keys: readonly Key[]) => SignatureCheck;
  /** Further options. The sender checks them. */
  readonly moreOptions?: readonly string[];
  /** The most bytes of a delivery, where the sender documents that. */
  readonly maxBody?: number;
  /** For how long it retries a delivery, in ms, where it documents that. */
  readonly retries?: number;
} & (
  | (Omit<Scheme, "url" | "scope"> & { readonly scope?: (given: Given) => Scheme["scope"] })
  | {
      readonly algorithm?: SignatureAlgorithm;
      readonly read: (given: Given, request: Request, body: Uint8Array) => SignedRequest;
    }
);

/** What its user gave, checked. */
export interface Given {
  readonly name: string;
  readonly url: ((request: Request) => string) | undefined;
  /** Whether the id comes from the body. */
  readonly fromBody: boolean;
}

type SenderOptions = Partial<SecretOptions & PublicKeyOptions & IdOptions & UrlOptions & ToleranceOptions>;

/** The provider of a sender that has a row. */
export interface Sender extends Verifier {
  /** @internal */
  readonly row: Row;
}

/**
 * Makes the provider of a sender.
 *
 * @param call the sender's function
 * @param options what its user gave
 * @throws {TypeError} an option is unknown, missing or not of its form
 * @throws {RangeError} `tolerance` is out of range
 */
export function sender(call: string, options: SenderOptions, row: Row): Sender {
  const names = [
    row.publicKey ? "publicKey" : "secret",
    ...(row.idOption ? ["id"] : []),
    ...(row.url ? ["url"] : []),
    ...(row.moreOptions ?? []),
    ...(row.tolerance === undefined ? [] : ["tolerance", "now"]),
    "name",
  ];
  checkOptions<object>(call, options, Object.fromEntries(names.map((option) => [option, later])));
  const name = options.name ?? row.name ?? call;
  const url = options.url === undefined && row.url !== "required" ? undefined : urlOption(options.url);
  const fromBody = row.idOption === undefined || isFromBody(row, options.id);
  const given = { name, url, fromBody };
  const keys = row.publicKey
    ? requireForms("publicKey", options.publicKey).map(row.publicKey)
    : requireForms("secret", options.secret, row.secret ?? generated);
  const provider = verifier({
    name,
    check: row.check?.(keys) ?? signatureCheck(row.algorithm ?? "HMAC-SHA256", keys),
    read: readerBy(row, given),
    tagged: options.name === undefined ? keys : [],
    tolerance: options.tolerance,
    now: options.now,
    defaultTolerance: row.tolerance,
    anyFuture: row.anyFuture,
    maxBody: row.maxBody,
    retries: row.retries,
  });
  return { ...provider, row };
}

function readerBy(row: Row, given: Given): ReadSigned {
  const { name, url, fromBody } = given;
  const { deliveryId } = row;
  const id = fromBody ? row.id : { header: deliveryId };
  if (!("read" in row)) return readerOf(name, { ...row, url, id, scope: row.scope?.(given) });
  return (request, body) => ({
    ...row.read(given, request, body),
    ...readIds(name, { id, deliveryId }, request),
  });
}

function isFromBody({ idOption, deliveryId }: Row, id: unknown): boolean {
  if (id !== undefined) return requireForm("id", id, /^(header|body)$/) === "body";
  if (idOption === "optional") return true;
  throw new TypeError(`id must be "header" (${deliveryId}, which is not signed) or "body" (the body's hash)`);
}
