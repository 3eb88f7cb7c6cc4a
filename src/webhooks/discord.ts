import { checkNames } from "../check.ts";
import { bodyId } from "./body.ts";
import { decodeHex } from "./decode.ts";
import { requireHeader } from "./header.ts";
import { requireForm, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { requireSignature } from "./signature.ts";
import type { SignedRequest } from "./signature-options.ts";
import { parseSeconds, type ToleranceOptions } from "./tolerance.ts";
import { uncheckedSignatureProvider } from "./unchecked-signature-provider.ts";

/** Options of {@link discord}; without a `tolerance` deliveries of any age are accepted. */
export interface DiscordOptions extends ToleranceOptions {
  /** The application's public key, 64 hex digits, or those of several applications. */
  readonly publicKey: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"discord"` and a tag of the keys, which keeps senders with
   * different keys apart. With a name of your own the keys are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const timestampHeader = "x-signature-timestamp";

const optionNames: Readonly<Record<keyof DiscordOptions, 1>> = {
  publicKey: 1,
  tolerance: 1,
  now: 1,
  name: 1,
};

/**
 * Discord's interactions and webhook events: `X-Signature-Ed25519` signs the time in `X-Signature-Timestamp` and the
 * body. The id is the body's `id`, which interactions have, or else the hash of the body: webhook events have no id.
 * Discord names no tolerance, so none is applied unless you give one.
 *
 * Discord waits 3 s for an answer. It retries webhook events for up to 10 minutes; for interactions it publishes
 * nothing.
 *
 * @throws {TypeError} at once: a public key is not 64 hex digits, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = discord({ publicKey: env.DISCORD_PUBLIC_KEY });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function discord(options: DiscordOptions): WebhookProvider {
  checkNames("discord", options, optionNames);
  const name = requireForm("name", options.name ?? "discord");
  const keys = requireForms("publicKey", options.publicKey, /^[0-9a-f]{64}$/i);
  const form = { decode: decodeHex, length: 64 };

  function read(request: Request, body: Uint8Array): SignedRequest {
    const signatures = requireSignature(name, request, "x-signature-ed25519", form);
    const seconds = requireHeader(name, request, timestampHeader);
    const timestamp = parseSeconds(name, timestampHeader, seconds);
    return {
      signatures,
      signed: [seconds, body],
      timestamp,
      open: async () => ({ id: await bodyId(body, "id") }),
    };
  }

  const key = keys.map((text) => decodeHex(text.toLowerCase())!);
  const { tolerance, now } = options;
  const tagSecrets = options.name === undefined;
  return uncheckedSignatureProvider(
    { name, algorithm: "Ed25519", key, tagSecrets, tolerance, now, read },
    Number.POSITIVE_INFINITY,
  );
}
