// Sends a webhook to the Worker, in several copies at once, and prints the answers. Signs it with the sender's secret from
// the environment, as `npm run dev` prints it.
import { randomUUID } from "node:crypto";
import process from "node:process";
import { readArguments, refuse } from "./arguments.mjs";
import { githubDelivery, send, standardDelivery, stripeDelivery } from "./deliveries.mjs";

/**
 * By sender: the variable with its secret, and an event with this id.
 *
 * @type {Record<string, { secret: string, deliver: (secret: string, id: string) => any }>}
 */
const senders = {
  github: {
    secret: "GITHUB_WEBHOOK_SECRET",
    deliver(secret, id) {
      const issue = { action: "opened", issue: { number: 42 }, repository: { full_name: "octo/demo" } };
      // GitHub signs the body alone, so that the id has to be in it.
      return githubDelivery(secret, "issues", { ...issue, id }, randomUUID());
    },
  },
  "standard-webhooks": {
    secret: "STANDARD_WEBHOOKS_SECRET",
    deliver: (secret, id) => standardDelivery(secret, { type: "invoice.paid", data: { id: "inv_42" } }, id),
  },
  stripe: {
    secret: "STRIPE_WEBHOOK_SECRET",
    deliver: (secret, id) => stripeDelivery(secret, "invoice.paid", { id: "in_42", object: "invoice" }, id),
  },
};

const names = Object.keys(senders).join("|");
const usage = `node tools/send-webhook.mjs --sender ${names} --url https://… [--copies 5] [--id TEXT]`;
const options = {
  sender: { type: "string" },
  url: { type: "string" },
  copies: { type: "string", default: "5" },
  // The same id again is the same delivery again.
  id: { type: "string", default: `evt_${randomUUID().replaceAll("-", "")}` },
};
const { sender, url, copies, id } = readArguments(options, usage);
if (!Object.hasOwn(senders, sender ?? "") || !url)
  refuse(`give a sender (${names}) and the Worker's URL`, usage);

const { secret, deliver } = senders[sender];
const { [secret]: value } = process.env;
if (!value) refuse(`the variable ${secret} is missing`, usage);
const delivery = await deliver(value, id);
const answers = Array.from({ length: Number(copies) }, async () => {
  const response = await send(new URL(url).origin, delivery);
  const replayed = response.headers.has("idempotent-replayed") ? " replayed" : "";
  console.log(`${response.status}${replayed} ${await response.text()}`);
});
await Promise.all(answers);
