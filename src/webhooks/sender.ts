import { checkOptions, later } from "../check/check.ts";
import { generated, requireForm, requireForms, urlOption } from "./option-checks.ts";
import type { IdOptions, PublicKeyOptions, SecretOptions, ToleranceOptions, UrlOptions } from "./options.ts";
import { readerOf, readIds, type Scheme } from "./scheme.ts";
import { type Key, type SignatureAlgorithm, type SignatureCheck, signatureCheck } from "./signature-check.ts";
import { type ReadSigned, type SignedRequest, type Verifier, verifier } from "./verifier.ts";

/** How a sender signs, and which options its users have besides `secret` and `name`. */
export type Row = {
  /** Default: the name of the sender's function. */
  readonly name?: string;
  readonly secret?: RegExp;
  /** Its users give a public key instead of a secret. */
  readonly publicKey?: (text: string) => Uint8Array;
  /** The default, in ms. Its users have `tolerance` and `now`. */
  readonly tolerance?: number;
  /** Times in the future are accepted, as by the sender's own libraries. */
  readonly anyFuture?: boolean;
  readonly url?: "optional" | "required";
  readonly id?: Scheme["id"];
  readonly deliveryId?: Scheme["deliveryId"];
  /** Its users have, or must give, `id`: whether `deliveryId` is the id. */
  readonly idOption?: "optional" | "required";
  readonly check?: (keys: readonly Key[]) => SignatureCheck;
  readonly moreOptions?: readonly string[];
  readonly maxBody?: number;
  readonly retries?: number;
} & (
  | (Omit<Scheme, "url" | "scope"> & { readonly scope?: (given: Given) => Scheme["scope"] })
  | {
      readonly algorithm?: SignatureAlgorithm;
      readonly read: (given: Given, request: Request, body: Uint8Array) => SignedRequest;
    }
);

export interface Given {
  readonly name: string;
  readonly url: ((request: Request) => string) | undefined;
  readonly fromBody: boolean;
}

type SenderOptions = Partial<SecretOptions & PublicKeyOptions & IdOptions & UrlOptions & ToleranceOptions>;

export interface Sender extends Verifier {
  /** @internal */
  readonly row: Row;
}

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
