import { HTTPException } from "hono/http-exception";
import { StaleFenceError } from "../src/inbox/index.ts";

/**
 * The answer to a delivery whose handling threw. It is never 2xx: the sender would not send the event again.
 *
 * @example
 * app.onError(answerError);
 */
export function answerError(error: Error): Response {
  if (error instanceof HTTPException) return error.getResponse();
  if (error instanceof StaleFenceError) {
    return problemResponse(503, "Someone else took over while this was being handled");
  }
  // The cause is for the operator, not for anyone who can send a request.
  console.error(error);
  return problemResponse(500, "The event could not be handled: send it again");
}

/**
 * A problem as a response (RFC 9457), with the fields of those of redlock-edge.
 *
 * @example
 * throw new HTTPException(501, { res: problemResponse(501, "This sender is not set up") });
 */
export function problemResponse(status: number, title: string): Response {
  const headers = {
    "content-type": "application/problem+json",
    ...(status === 503 && { "retry-after": "1" }),
  };
  return new Response(JSON.stringify({ title, status }), { status, headers });
}
