/** The option of every sender. */
export interface NamedOptions {
  /**
   * The provider's name in the scope of keys. Default: the sender's name and a tag of its secrets. A name of your own
   * has no tags, so give senders with different secrets different names.
   */
  readonly name?: string | undefined;
}

/** Options of senders that sign with a secret. */
export interface SecretOptions extends NamedOptions {
  /** The sender's secret, or several while you rotate it: each is accepted. */
  readonly secret: string | readonly string[];
}

/** Options of senders that sign with a private key. */
export interface PublicKeyOptions extends NamedOptions {
  /** The sender's public key, or several: each is accepted. */
  readonly publicKey: string | readonly string[];
}

/** Options of senders that do not sign their id. */
export interface IdOptions {
  /**
   * `"body"`: a hash of the signed text, so nobody can repeat a captured delivery under a new id, but two events with
   * equal bodies count as one (docs/senders.md). `"header"`: the sender's header, so anyone with a captured delivery
   * can repeat it under new ids. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
}

/** Options of senders that sign the URL. */
export interface UrlOptions {
  /** The URL as you gave it to the sender. Set it if a proxy changes any part. Default: the request's. */
  readonly url?: SignedUrl | undefined;
}

/**
 * The URL that a sender signs, or a function that returns it, for example by tenant. With a string, the path and query
 * of the request itself are not verified.
 */
export type SignedUrl = string | ((request: Request) => string);

/** Options of senders that sign the time. */
export interface ToleranceOptions {
  /**
   * How far the signed time may be from now, in ms, in both directions: an integer of at least 1 000. Default 300 000
   * (5 minutes), unless the sender says otherwise.
   */
  readonly tolerance?: number | undefined;
  /** The wall clock, in ms since 1970. Default: the platform's. */
  readonly now?: (() => number) | undefined;
}

/** Options of `shopify`. */
export interface ShopifyOptions extends SecretOptions, IdOptions {
  /**
   * The topics of this URL, e.g. `["orders/create", "orders/paid"]`. Others are refused, because the topic is not
   * signed, so anyone could repeat a captured delivery under any number of topics. Required unless `id` is `"header"`.
   */
  readonly topics?: string | readonly string[] | undefined;
}

/** Options of `standardWebhooks`, with `secret`, `publicKey` or both. */
export interface StandardWebhooksOptions extends NamedOptions, ToleranceOptions {
  /**
   * Secrets of scheme `v1` (HMAC-SHA256): base64 of 24 to 64 bytes, with or without `whsec_` or `v1,whsec_`. For plain
   * text (`polar_whs_…`), pass `btoa(secret)`.
   */
  readonly secret?: string | readonly string[] | undefined;
  /**
   * Public keys of scheme `v1a` (Ed25519, if the platform's Web Crypto has it): base64 of 32 bytes, with or without
   * `whpk_`.
   */
  readonly publicKey?: string | readonly string[] | undefined;
  /**
   * The start of the headers' names. The first one with `-id`, `-timestamp` and `-signature` is used. Default
   * `["webhook", "svix"]`.
   */
  readonly headerPrefix?: string | readonly string[] | undefined;
}
