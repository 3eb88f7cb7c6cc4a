// What users of senders can give.

/** The option of every sender. */
export interface NamedOptions {
  /**
   * The provider's name in the scope of keys. Default: the sender's name, and a tag of its secrets or public keys, which
   * keeps senders with different ones apart. With a name of your own these are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

/** Options of senders that sign with a secret. */
export interface SecretOptions extends NamedOptions {
  /** The secret that the sender gave you, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
}

/** Options of senders that sign with a private key. */
export interface PublicKeyOptions extends NamedOptions {
  /** The sender's public key, or several: each of them is accepted. */
  readonly publicKey: string | readonly string[];
}

/** Options of senders that do not sign the header with the delivery's id. */
export interface IdOptions {
  /**
   * `"body"`: the id is the hash of the signed text, as the sender's description says: no header can turn a captured
   * delivery into a new one, and equal deliveries count as one, even if they are two events: docs/senders.md lists the
   * kinds. `"header"`: the id is the sender's header, which is not signed, so anyone who captured a delivery can repeat it
   * under new ids. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
}

/** Options of senders that sign the URL. */
export interface UrlOptions {
  /** The URL as you gave it to the sender. Default: the request's. Set it if a proxy changes any part of it. */
  readonly url?: SignedUrl | undefined;
}

/**
 * The URL that a sender calls and signs, as it was given to the sender, or a function that returns it, for URLs that
 * differ, for example by tenant. With a text, path and query of the request itself are not verified.
 */
export type SignedUrl = string | ((request: Request) => string);

/** Options of senders that sign the time. */
export interface ToleranceOptions {
  /**
   * The largest accepted distance between the signed time and now, in ms, in the past and in the future. An integer
   * of at least 1 000, because most senders sign whole seconds. Anything else is a `RangeError` at once. Default 300 000
   * (5 minutes), unless the sender's description says otherwise.
   */
  readonly tolerance?: number | undefined;
  /** The wall clock, in ms since 1970. Default: the platform's clock. */
  readonly now?: (() => number) | undefined;
}

/** Options of `shopify`. */
export interface ShopifyOptions extends SecretOptions, IdOptions {
  /**
   * The topics that this address receives, e.g. `["orders/create", "orders/paid"]`. Others are refused. The topic is
   * part of the scope, but not signed: without a list, anyone who captured a delivery could send it again under any
   * number of topics. Required unless `id` is `"header"`.
   */
  readonly topics?: string | readonly string[] | undefined;
}

/** Options of `standardWebhooks`. At least one of `secret` and `publicKey` is required. */
export interface StandardWebhooksOptions extends NamedOptions, ToleranceOptions {
  /**
   * Secrets of the `v1` scheme (HMAC-SHA256): base64 of 24 … 64 bytes, with or without `whsec_` or, as Supabase shows it,
   * `v1,whsec_` before it. Several while one is being rotated: each of them is accepted. Of a secret that begins with
   * `whsec_`, the text is accepted as key, too, because Polar's older secrets sign so. If yours has no such prefix and is
   * plain text (`polar_whs_…`), give `btoa(secret)`.
   */
  readonly secret?: string | readonly string[] | undefined;
  /** Public keys of the `v1a` scheme (Ed25519): base64 of 32 bytes, with or without `whpk_` before it. */
  readonly publicKey?: string | readonly string[] | undefined;
  /**
   * What precedes `-id`, `-timestamp` and `-signature` in the names of the headers. The first prefix with all three
   * headers is used. Default `["webhook", "svix"]`.
   */
  readonly headerPrefix?: string | readonly string[] | undefined;
}
