// The handler as a Worker.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { bookkeeper } from "../bookkeeper.js";

export default {
  /**
   * @param {Request} request
   * @param {{ STRIPE_WEBHOOK_SECRET: string, [name: string]: string }} env
   */
  fetch(request, env) {
    const redlock = new Redlock({ endpoints: endpointsFromEnv(env) });
    const book = (/** @type {string} */ invoice) => console.log("booked", invoice);
    return bookkeeper(redlock, { secret: env.STRIPE_WEBHOOK_SECRET, book })(request);
  },
};
