import { toHex } from "../../runtime/bytes.ts";
import { jsonFields } from "../body.ts";
import { isId } from "../header.ts";
import { generated, requireForm } from "../option-checks.ts";
import { constantTimeEqual, hmacSha256 } from "../signature-check.ts";

/**
 * Answers the GET with which Meta confirms a URL, with 403 if the verify token is wrong. Undefined for other requests.
 *
 * @param verifyToken the text that you gave to Meta with the URL
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
  // No browser runs plain text.
  const headers = { "content-type": "text/plain", "x-content-type-options": "nosniff" };
  return new Response(challenge, { headers });
}

/**
 * Answers the request with which Zoom confirms a URL. Undefined for other bodies. Call it only after `verify`, because
 * the answer is signed with Zoom's secret.
 *
 * @param secret the app's secret token that Zoom has now
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
  // A text like `v0:time:body` would be answered with the signature of a delivery.
  const isToken = typeof plainToken === "string" && /^[\w+/=-]{1,255}$/.test(plainToken);
  if (event !== "endpoint.url_validation" || !isToken) return undefined;
  const encryptedToken = toHex(await hmacSha256(secret, plainToken));
  return Response.json({ plainToken, encryptedToken });
}
