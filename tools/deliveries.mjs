import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { sign } from "@octokit/webhooks-methods";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";

/**
 * A webhook as its sender sends it.
 *
 * @typedef {object} Delivery
 * @property {string} provider its name in the Worker
 * @property {string} key its key in the Worker's table `effects`
 * @property {string} id
 * @property {string} path
 * @property {Record<string, string>} headers
 * @property {string} body
 */

/**
 * GitHub's own example payloads of its webhooks.
 *
 * @returns {{ name: string, examples: Record<string, unknown>[] }[]} by event
 *
 * @example
 * const issues = githubExamples().find(({ name }) => name === "issues").examples;
 */
export function githubExamples() {
  return createRequire(import.meta.url)("@octokit/webhooks-examples");
}

/**
 * A delivery of GitHub, signed by GitHub's own code (@octokit/webhooks-methods) and not by the code that verifies it.
 *
 * @param {string} secret
 * @param {string} event as in `X-GitHub-Event`
 * @param {unknown} payload
 * @param {string} id as in `X-GitHub-Delivery`
 * @returns {Promise<Delivery>}
 *
 * @example
 * await githubDelivery(secret, "issues", { action: "opened", … }, crypto.randomUUID());
 */
export async function githubDelivery(secret, event, payload, id) {
  const body = JSON.stringify(payload);
  // The Worker identifies a delivery by its body, the only signed part.
  const hash = createHash("sha256").update(body).digest("hex");
  return {
    provider: "github",
    key: `github:${hash}`,
    id: hash,
    path: "/webhooks/github",
    headers: {
      "content-type": "application/json",
      "x-github-event": event,
      "x-github-delivery": id,
      "x-hub-signature-256": await sign(secret, body),
    },
    body,
  };
}

/**
 * A Standard Webhook, signed by the reference library (standardwebhooks).
 *
 * @param {string} secret `whsec_…`
 * @param {unknown} payload
 * @param {string} id as in `webhook-id`
 * @returns {Delivery}
 *
 * @example
 * standardDelivery(secret, { type: "invoice.paid", data: { id: "inv_42" } }, "msg_1");
 */
export function standardDelivery(secret, payload, id) {
  const body = JSON.stringify(payload);
  const now = new Date();
  return {
    provider: "standard-webhooks",
    key: `standard-webhooks:${id}`,
    id,
    path: "/webhooks/standard-webhooks",
    headers: {
      "content-type": "application/json",
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(now.getTime() / 1000)),
      "webhook-signature": new Webhook(secret).sign(id, now, body),
    },
    body,
  };
}

/**
 * An event of Stripe, signed by Stripe's own library.
 *
 * @param {string} secret `whsec_…`
 * @param {string} type e.g. `invoice.paid`
 * @param {unknown} object the event's `data.object`, with its id
 * @param {string} id of the event
 * @returns {Delivery}
 *
 * @example
 * stripeDelivery(secret, "invoice.paid", { id: "in_42", object: "invoice" }, "evt_1");
 */
export function stripeDelivery(secret, type, object, id) {
  const created = Math.floor(Date.now() / 1000);
  const body = JSON.stringify({ id, object: "event", created, type, data: { object } });
  return {
    provider: "stripe",
    key: `stripe:${id}`,
    id,
    path: "/webhooks/stripe",
    headers: {
      "content-type": "application/json; charset=utf-8",
      "stripe-signature": Stripe.webhooks.generateTestHeaderString({ payload: body, secret }),
    },
    body,
  };
}

/**
 * The same delivery with a body that was not signed.
 *
 * @param {Delivery} delivery
 * @returns {Delivery}
 *
 * @example
 * const response = await send(worker.url, forged(delivery)); // 401
 */
export function forged(delivery) {
  return { ...delivery, body: `${delivery.body} ` };
}

/**
 * Sends a delivery once.
 *
 * @param {string} url where the Worker listens
 * @param {Delivery} delivery
 * @param {AbortSignal} [signal]
 * @returns {Promise<Response>}
 *
 * @example
 * const { status } = await send(worker.url, delivery);
 */
export function send(url, { path, headers, body }, signal) {
  // A connection of its own: workerd closes one whose request's body the Worker did not read, without saying so.
  return fetch(url + path, { method: "POST", headers: { ...headers, connection: "close" }, body, signal });
}
