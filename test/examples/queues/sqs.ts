import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { SQSBatchResponse } from "aws-lambda";
import { onTestFinished } from "vitest";
import { type RawReply, type RawRequest, startRawServer } from "../../support/raw-server.ts";
import type { StandIn } from "./kills.ts";

/** A stand-in of a standard SQS queue, and of the event source mapping with `ReportBatchItemFailures` that invokes Lambda. */
export interface Sqs extends StandIn {
  readonly url: string;
}

/** ms after which a message that was not deleted is delivered again. */
const visibilityTimeout = 100;
const maxReceiveCount = 30;

/** @param invoke calls the consumer's function with an event; rejects when it has failed */
export async function startSqs(invoke: (event: object) => Promise<unknown>): Promise<Sqs> {
  const stopped = new AbortController();

  function answer({ headers, body }: RawRequest): RawReply {
    if (headers["x-amz-target"] !== "AmazonSQS.SendMessage") return { status: 400 };
    const { MessageBody } = JSON.parse(body) as { MessageBody: string };
    const MessageId = randomUUID();
    for (let copy = 0; copy < sqs.copies; copy += 1) {
      // Stopped by the end of the test.
      keepDelivering(MessageId, MessageBody).catch(() => undefined);
    }
    const MD5OfMessageBody = createHash("md5").update(MessageBody).digest("hex");
    return {
      headers: { "content-type": "application/x-amz-json-1.0" },
      body: JSON.stringify({ MessageId, MD5OfMessageBody }),
    };
  }

  async function keepDelivering(messageId: string, body: string): Promise<void> {
    const eventSourceARN = "arn:aws:sqs:eu-central-1:123456789012:shipments";
    for (let received = 1; received <= maxReceiveCount; received += 1) {
      const attributes = { ApproximateReceiveCount: `${received}` };
      const record = { messageId, body, attributes, eventSource: "aws:sqs", eventSourceARN };
      const [outcome] = await Promise.allSettled([invoke({ Records: [record] })]);
      if (outcome.status === "fulfilled") {
        const { batchItemFailures } = outcome.value as SQSBatchResponse;
        if (batchItemFailures.length === 0) {
          sqs.acked += 1;
          return;
        }
        sqs.postponed += 1;
      }
      await sleep(visibilityTimeout, undefined, stopped);
    }
    sqs.dead += 1;
  }

  const server = await startRawServer(answer);
  onTestFinished(async () => {
    stopped.abort();
    await server.close();
  });
  const sqs = { acked: 0, dead: 0, postponed: 0, copies: 1, url: server.url };
  return sqs;
}
