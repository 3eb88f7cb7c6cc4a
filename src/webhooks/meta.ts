import { checkNames } from "../check.ts";
import { constantTimeEqual } from "./equal.ts";
import { isId } from "./header.ts";
import { generated, requireForm, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link meta}. */
export interface MetaOptions {
  /** The app secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * The provider's name in the scope of keys. Default `"meta"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

const optionNames: Readonly<Record<keyof MetaOptions, 1>> = { secret: 1, name: 1 };

/**
 * Meta's webhooks (WhatsApp, Messenger, Instagram, Pages): `X-Hub-Signature-256` is the hex HMAC-SHA256 of the body.
 * Meta signs neither an id nor a time. The id is the body's hash. The older `X-Hub-Signature` (SHA-1) is ignored. Meta
 * asks for the URL's confirmation with a GET: see {@link metaChallenge}.
 *
 * A delivery may contain several messages, which another delivery may repeat in another batch: where one message must
 * be handled once, use its `id` in a run of its own.
 *
 * @throws {TypeError} at once: a secret is empty or contains white space, or an option is unknown
 *
 * @example
 * const provider = meta({ secret: env.META_APP_SECRET });
 * const { id } = await provider.verify(request, body);
 */
export function meta(options: MetaOptions): WebhookProvider {
  checkNames("meta", options, optionNames);
  return uncheckedHmacProvider({
    name: options.name ?? "meta",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret, generated),
    header: "x-hub-signature-256",
    prefix: "sha256=",
  });
}

/**
 * Answers the GET with which Meta confirms a URL: with its `hub.challenge` if it knows the verify token, otherwise with
 * 403. Undefined for every other request.
 *
 * @param verifyToken the text that you gave to Meta together with the URL
 * @throws {TypeError} `verifyToken` is empty or not a string
 *
 * @example
 * const answer = metaChallenge(request, env.META_VERIFY_TOKEN);
 * if (answer) return answer;
 */
export function metaChallenge(request: Request, verifyToken: string): Response | undefined {
  const expected = new TextEncoder().encode(requireForm("verifyToken", verifyToken));
  const query = new URL(request.url).searchParams;
  if (request.method !== "GET" || query.get("hub.mode") !== "subscribe") return undefined;
  const token = new TextEncoder().encode(query.getAll("hub.verify_token")[0]);
  const challenge = query.get("hub.challenge");
  if (!constantTimeEqual(token, expected) || !isId(challenge)) return new Response(null, { status: 403 });
  // Plain text, which no browser takes for a page.
  const headers = { "content-type": "text/plain", "x-content-type-options": "nosniff" };
  return new Response(challenge, { headers });
}
