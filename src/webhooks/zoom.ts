import { toHex } from "../bytes.ts";
import { checkNames } from "../check.ts";
import { jsonFields } from "./body.ts";
import { hmacSha256 } from "./hmac.ts";
import { generated, requireForm, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import type { ToleranceOptions } from "./tolerance.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link zoom}; `tolerance` is 300 000 (5 minutes) by default. */
export interface ZoomOptions extends ToleranceOptions {
  /** The app's secret token, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"zoom"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof ZoomOptions, 1>> = { secret: 1, tolerance: 1, now: 1, name: 1 };

/**
 * Zoom's webhooks: `x-zm-signature` is `v0=` and the hex HMAC-SHA256 of `v0:time:body`, with the time from
 * `x-zm-request-timestamp`. Zoom signs no id. The id is the body's hash; `deliveryId` is `x-zm-trackingid`, which the
 * signature does not cover. Zoom asks for the URL's confirmation, also every 72 hours: see {@link zoomChallenge}.
 *
 * Zoom waits 3 s for an answer and retries after 5, 25 and 85 minutes. It does not publish whether a retry has a new
 * time: if retries are refused with `outside-tolerance`, set `tolerance` to 2 hours.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, or an option is unknown
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * const provider = zoom({ secret: env.ZOOM_SECRET_TOKEN });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function zoom(options: ZoomOptions): WebhookProvider {
  checkNames("zoom", options, optionNames);
  return uncheckedHmacProvider({
    name: options.name ?? "zoom",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret, generated),
    header: "x-zm-signature",
    prefix: "v0=",
    signedText: "v0:{time}:{body}",
    time: { header: "x-zm-request-timestamp" },
    deliveryId: "x-zm-trackingid",
    tolerance: options.tolerance,
    now: options.now,
  });
}

/**
 * Answers the request with which Zoom confirms a URL (`endpoint.url_validation`): with its token and the token's
 * HMAC-SHA256. Undefined for every other body.
 *
 * Call it only after `verify`: the answer is signed with the secret that Zoom signs with.
 *
 * @param secret the app's secret token; the one that Zoom has now, if it is being rotated
 * @throws {TypeError} `secret` is empty or contains white space
 *
 * @example
 * await provider.verify(request, body);
 * const answer = await zoomChallenge(body, env.ZOOM_SECRET_TOKEN);
 * if (answer) return answer;
 */
export async function zoomChallenge(body: Uint8Array, secret: string): Promise<Response | undefined> {
  requireForm("secret", secret, generated);
  const { event, payload } = jsonFields(body);
  const { plainToken }: { plainToken?: unknown } = Object(payload);
  // Zoom's tokens are of this form. A text like `v0:time:body` would be answered with the signature of a delivery.
  const isToken = typeof plainToken === "string" && /^[\w+/=-]{1,255}$/.test(plainToken);
  if (event !== "endpoint.url_validation" || !isToken) return undefined;
  const encryptedToken = toHex(await hmacSha256(secret, plainToken));
  return Response.json({ plainToken, encryptedToken });
}
