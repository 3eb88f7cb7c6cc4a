import { checkNames } from "../check.ts";
import { bodyId } from "./body.ts";
import { requireBytes, requireForm, requireForms, requireHeader, type WebhookProvider } from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, decodeHex, requireSignature, signatureCheck } from "./signature.ts";
import { parseSeconds, type ToleranceOptions, toleranceCheck } from "./tolerance.ts";

/** Options of {@link discord}; without a `tolerance` deliveries of any age are accepted. */
export interface DiscordOptions extends ToleranceOptions {
  /** The application's public key, 64 hex digits, or those of several applications. */
  readonly publicKey: string | readonly string[];
  /**
   * Stands for this sender in the scope of keys. Default `"discord"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const timestampHeader = "x-signature-timestamp";

const names: Readonly<Record<keyof DiscordOptions, 1>> = { publicKey: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Discord's interactions and webhook events: `X-Signature-Ed25519` of the time in `X-Signature-Timestamp` and
 * the body. The id is the body's `id`, which interactions have, or else the hash of the body: webhook events
 * have none. Discord names no tolerance, so none is applied unless it is given.
 *
 * Discord waits 3 s for an answer. It retries webhook events for up to 10 minutes; of interactions it says
 * nothing.
 *
 * @throws {TypeError} at once, when a public key is not 64 hex digits.
 * @throws {RangeError} at once, when `tolerance` is out of range.
 *
 * @example
 * const provider = discord({ publicKey: env.DISCORD_PUBLIC_KEY });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function discord(options: DiscordOptions): WebhookProvider {
  checkNames("discord", options, names);
  const name = requireForm("name", options.name ?? "discord");
  const keys = requireForms("publicKey", options.publicKey, /^[0-9a-f]{64}$/i);
  const bytes = keys.map((key) => decodeHex(key.toLowerCase())!);
  const signed = signatureCheck("Ed25519", bytes);
  const tags = secretTags(options.name, bytes);
  const checkTolerance = toleranceCheck(name, options, Number.POSITIVE_INFINITY);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "x-signature-ed25519", "", decodeHex, 64);
      const seconds = requireHeader(name, request, timestampHeader);
      const timestamp = parseSeconds(name, timestampHeader, seconds);
      checkTolerance(timestamp);
      if (!(await signed(signature, body, seconds))) throw badSignature(name);
      return { id: await bodyId(body, "id"), timestamp, idSigned: true, ...(await tags()) };
    },
  };
}
