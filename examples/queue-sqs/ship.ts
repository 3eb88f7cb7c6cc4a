// SQS's consumer on Lambda: each order is shipped once, however often its message is delivered.

import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { Idempotency } from "redlock-edge/idempotency";

const idempotency = new Idempotency(new Redlock({ endpoints: endpointsFromEnv(process.env) }), {
  retention: 17 * 86_400_000, // SQS keeps a message for up to 14 days, and Stripe may send its event again for 3
});
const warehouse = process.env.WAREHOUSE_URL ?? "https://warehouse.example";

export async function handler(event: SQSEvent, context: Context): Promise<SQSBatchResponse> {
  // Lambda stops the code at its timeout. The 1.5 s before that are for freeing the keys and answering.
  const deadline = Date.now() + context.getRemainingTimeInMillis() - 1_500;
  const outcomes = await Promise.allSettled(event.Records.map((record) => shipOnce(record, deadline)));
  // Only these are delivered again. They include messages whose order another invocation is shipping now
  // (InProgressError): if they counted as done and that invocation died, the order would never be shipped.
  const batchItemFailures = event.Records.flatMap(({ messageId }, index) => {
    const outcome = outcomes[index];
    if (outcome?.status !== "rejected") return [];
    console.error(messageId, outcome.reason); // Lambda and SQS do not say why a message failed
    return [{ itemIdentifier: messageId }];
  });
  return { batchItemFailures };
}

async function shipOnce({ body }: SQSRecord, deadline: number): Promise<void> {
  const { event, order } = JSON.parse(body) as { event: string; order: string };
  // The event's id, not the message's: a producer that sends twice makes two messages of one event.
  await idempotency.run(event, { scope: "ship", deadline }, async ({ signal }) => {
    const shipped = await fetch(`${warehouse}/shipments`, {
      method: "POST",
      // After a crash this is sent again. By the key the warehouse knows that it is the same shipment.
      headers: { "content-type": "application/json", "idempotency-key": event },
      body: JSON.stringify({ order }),
      signal,
    });
    await shipped.body?.cancel();
    if (!shipped.ok) throw new Error(`order ${order}: the warehouse answered ${shipped.status}`);
  });
}
