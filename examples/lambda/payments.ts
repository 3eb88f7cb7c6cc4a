// POST /payments behind an HTTP API (payload format 2.0) with a JWT authorizer: one payment per Idempotency-Key.

import type {
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyStructuredResultV2,
  Context,
} from "aws-lambda";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { withIdempotency } from "redlock-edge/http";
import type { RunContext } from "redlock-edge/idempotency";
import { deadlineOf } from "./deadline.js";

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const ledger = process.env.LEDGER_URL ?? "https://ledger.example";

export async function handler(
  event: APIGatewayProxyEventV2WithJWTAuthorizer,
  context: Context,
): Promise<APIGatewayProxyStructuredResultV2> {
  // The user, not the token: a client that gets a new token before it retries is still the same user.
  const { sub } = event.requestContext.authorizer.jwt.claims;
  if (typeof sub !== "string") return { statusCode: 401 };
  const response = await withIdempotency(requestOf(event), (request, run) => pay(sub, request, run), {
    redlock,
    scope: sub,
    deadline: deadlineOf(context),
  });
  return resultOf(response);
}

async function pay(user: string, request: Request, run: RunContext | undefined): Promise<Response> {
  const paid = await fetch(ledger, {
    method: "POST",
    // After a crash this runs again. By the key the ledger knows that it is the same payment, of the same user.
    headers: { "content-type": "application/json", "idempotency-key": `${user}:${run?.key}` },
    body: await request.text(),
    signal: request.signal, // aborts at the deadline, early enough to free the key
  });
  // A refusal is a result of the payment, too. 5xx is not: the next attempt calls the ledger again.
  return new Response(await paid.arrayBuffer(), {
    status: paid.status,
    headers: { "content-type": "application/json" },
  });
}

function requestOf(event: APIGatewayProxyEventV2WithJWTAuthorizer): Request {
  const { domainName, http } = event.requestContext;
  const query = event.rawQueryString && `?${event.rawQueryString}`;
  const body = event.body && Buffer.from(event.body, event.isBase64Encoded ? "base64" : "utf8");
  const headers = new Headers();
  for (const [name, value = ""] of Object.entries(event.headers)) headers.set(name, value);
  return new Request(`https://${domainName}${event.rawPath}${query}`, {
    method: http.method,
    headers,
    ...(body && { body }),
  });
}

async function resultOf(response: Response): Promise<APIGatewayProxyStructuredResultV2> {
  return {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body: Buffer.from(await response.arrayBuffer()).toString("base64"),
    isBase64Encoded: true,
  };
}
