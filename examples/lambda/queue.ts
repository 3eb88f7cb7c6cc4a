// A standard SQS queue of orders: each order is shipped once, however often its message is delivered.

import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from "aws-lambda";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { Idempotency } from "redlock-edge/idempotency";

const idempotency = new Idempotency(new Redlock({ endpoints: endpointsFromEnv(process.env) }), {
  retention: 14 * 86_400_000, // the longest that SQS keeps a message
});
const warehouse = process.env.WAREHOUSE_URL ?? "https://warehouse.example";

export async function handler(event: SQSEvent, context: Context): Promise<SQSBatchResponse> {
  // Lambda stops the code at its timeout. The 1.5 s before that are for freeing the keys and answering.
  const deadline = Date.now() + context.getRemainingTimeInMillis() - 1_500;
  const outcomes = await Promise.allSettled(event.Records.map((record) => shipOnce(record, deadline)));
  // Only these are delivered again. They include messages whose order another invocation is shipping now
  // (InProgressError): if they counted as done and that invocation died, the order would never be shipped.
  const failed = event.Records.filter((_, index) => outcomes[index]?.status === "rejected");
  return { batchItemFailures: failed.map(({ messageId }) => ({ itemIdentifier: messageId })) };
}

async function shipOnce(record: SQSRecord, deadline: number): Promise<void> {
  const { order } = JSON.parse(record.body) as { order: string };
  // The order's id, not the message's: a producer that sends twice makes two messages of one order.
  await idempotency.run(order, { scope: record.eventSourceARN, deadline }, async ({ signal }) => {
    const shipped = await fetch(`${warehouse}/orders/${encodeURIComponent(order)}`, {
      method: "PUT",
      signal,
    });
    await shipped.body?.cancel();
    if (!shipped.ok) throw new Error(`order ${order}: the warehouse answered ${shipped.status}`);
  });
}
