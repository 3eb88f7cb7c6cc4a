import type { Delivery } from "../../tools/deliveries.mjs";

/**
 * The event of an HTTP API, payload format 2.0.
 *
 * @param context belongs into `requestContext`
 */
export function lambdaEvent(
  { path, headers, body }: Pick<Delivery, "path" | "headers" | "body">,
  context: object = {},
): object {
  return {
    version: "2.0",
    rawPath: path,
    rawQueryString: "",
    headers,
    requestContext: { domainName: "shop.example", http: { method: "POST", path }, ...context },
    body: Buffer.from(body).toString("base64"),
    isBase64Encoded: true,
  };
}
