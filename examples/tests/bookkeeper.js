// What is tested: a handler of Stripe's events that books each invoice once.

import { withIdempotency } from "redlock-edge/http";
import { stripe } from "redlock-edge/webhooks";

/**
 * @param {import("redlock-edge").Redlock} redlock
 * @param {{ secret: string, book: (invoice: string) => void }} options
 * @returns {(request: Request) => Promise<Response>}
 */
export function bookkeeper(redlock, { secret, book }) {
  const options = { redlock, provider: stripe({ secret }), handler: "book" };
  const handle = async (/** @type {Request} */ request) => {
    const { type, data } = await request.json();
    if (type === "invoice.paid") book(data.object.id);
    return new Response("booked");
  };
  return (request) => withIdempotency(request, handle, options);
}
