// A Lambda handler that pays an invoice under a lock, and never relies on the lock after Lambda's timeout.

import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const invoices = new Map([["42", { paid: false, fence: 0 }]]); // stands for your database

/**
 * @param {{ invoice: string }} event
 * @param {{ getRemainingTimeInMillis(): number }} context
 */
export async function handler(event, context) {
  // Lambda stops the code at its timeout, so the lock must not be relied on after it. The remaining 1.5 s are for the
  // release.
  const deadline = Date.now() + context.getRemainingTimeInMillis() - 1_500;
  try {
    return await redlock.using(`invoice:${event.invoice}`, { deadline, fencing: true }, ({ fence }) => {
      const invoice = invoices.get(event.invoice);
      if (!invoice) return { statusCode: 404, body: "unknown" };
      if (fence <= invoice.fence) throw new Error("a later holder has been here");
      invoices.set(event.invoice, { paid: true, fence });
      return { statusCode: 200, body: invoice.paid ? "was paid" : "paid" };
    });
  } catch (error) {
    if (error instanceof LockHeldError) return { statusCode: 409, body: "being paid" };
    throw error;
  }
}

if (import.meta.url.endsWith(process.argv[1] ?? "-")) {
  const context = { getRemainingTimeInMillis: () => 10_000 };
  const answers = await Promise.all([1, 2, 3].map(() => handler({ invoice: "42" }, context)));
  console.log(
    answers
      .map(({ body }) => body)
      .sort()
      .join(", "),
  );
}
