import { checkNames } from "../check.ts";
import { bodyHash } from "./body.ts";
import { decodeBase64 } from "./decode.ts";
import { deliveryIdIn, requireId } from "./header.ts";
import { generated, idFromBody, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { badSignature, requireSignature } from "./signature.ts";
import type { SignedRequest } from "./signature-options.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";
import { type SignedUrl, urlOption } from "./url.ts";

/** Options of {@link twilio}. */
export interface TwilioOptions {
  /** The account's auth token, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The URL as you gave it to Twilio, which is signed. Default: the request's; give it where a proxy changes scheme,
   * host, port or path. The parameter `bodySHA256`, which Twilio adds itself, is taken from the request.
   */
  readonly url?: SignedUrl | undefined;
  /**
   * `"body"`: the id is the SHA-256 of what is signed, the URL and the fields. Two requests that are equal in all of it
   * count as one: see `docs/webhooks.md` for voice menus. `"header"`: the id is `I-Twilio-Idempotency-Token`, which is
   * not signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * The provider's name in the scope of keys. Default `"twilio"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof TwilioOptions, 1>> = { secret: 1, url: 1, id: 1, name: 1 };

const idHeader = "i-twilio-idempotency-token";

/**
 * Twilio's webhooks: `X-Twilio-Signature` is the base64 HMAC-SHA1 of the URL and the form's fields, sorted by name. For
 * other bodies it is that of the URL alone, whose parameter `bodySHA256` is the body's hash. Twilio signs neither an id
 * nor a time. The id is the hash of what is signed, not of the body: the same fields in another order or spelling have
 * the same signature.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, `url` is no URL, or an option is unknown
 *
 * @example
 * const provider = twilio({ secret: env.TWILIO_AUTH_TOKEN, url: "https://shop.example/webhooks/twilio" });
 * const { id } = await provider.verify(request, body);
 */
export function twilio(options: TwilioOptions): WebhookProvider {
  checkNames("twilio", options, optionNames);
  const { name = "twilio" } = options;
  const fromBody = idFromBody(options.id);
  const url = urlOption(options.url);
  const form = { decode: decodeBase64, length: 20 };

  function read(request: Request, body: Uint8Array): SignedRequest {
    const signatures = requireSignature(name, request, "x-twilio-signature", form);
    const hash = /[?&]bodySHA256=([0-9a-f]{64})$/.exec(request.url)?.[1];
    const signed = hash === undefined ? url(request) + fieldsOf(body) : withHash(url(request), hash);
    return {
      signatures,
      signed,
      id: fromBody ? undefined : requireId(name, request, idHeader),
      idSigned: fromBody,
      ...deliveryIdIn(request, [idHeader]),
      async open() {
        // With a hash at another place, the URL alone would be signed, and nothing of the body.
        const isBound =
          hash === undefined ? !/bodySHA256/i.test(request.url) : hash === (await bodyHash(body));
        if (!isBound) throw badSignature(name, "the URL's bodySHA256 is not that of the body");
        return fromBody ? { id: await bodyHash(new TextEncoder().encode(signed)) } : {};
      },
    };
  }

  const key = requireForms("secret", options.secret, generated);
  const tagSecrets = options.name === undefined;
  return uncheckedSignatureProvider({ name, algorithm: "HMAC-SHA1", key, tagSecrets, read });
}

/**
 * The fields of a form as they are signed: sorted by name, each with its different values, sorted, without separators.
 * Read in one pass: anyone can send megabytes of fields, and the signature is checked only after this.
 */
function fieldsOf(body: Uint8Array): string {
  const text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true }).decode(body);
  const fields = new Map<string, Set<string>>();
  // Behind an "&": alone, a "?" at the beginning would be left out.
  for (const [name, value] of new URLSearchParams(`&${text}`)) {
    const values = fields.get(name) ?? new Set();
    fields.set(name, values.add(value));
  }
  const names = [...fields.keys()].sort();
  return names.flatMap((name) => [...fields.get(name)!].sort().map((value) => name + value)).join("");
}

function withHash(url: string, hash: string): string {
  return url.includes("bodySHA256=") ? url : `${url}${url.includes("?") ? "&" : "?"}bodySHA256=${hash}`;
}
