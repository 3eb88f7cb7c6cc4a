import type {
  APIGatewayProxyEventV2WithJWTAuthorizer,
  APIGatewayProxyStructuredResultV2,
  Context,
  SQSBatchResponse,
  SQSEvent,
} from "aws-lambda";
import { importInNode } from "./bundle.ts";
import type { staged } from "./stage.ts";

// What Lambda calls the handlers of examples/lambda with.

/** Lambda's context of an invocation with `ms` remaining. */
export function contextOf(ms = 30_000): Context {
  const end = Date.now() + ms;
  return { getRemainingTimeInMillis: () => end - Date.now() } as Context;
}

/** A request to pay. */
export function payment(key: string | undefined, body = '{"amount":10}', user = "user-1") {
  return {
    version: "2.0",
    rawPath: "/payments",
    rawQueryString: "",
    headers: { "content-type": "application/json", ...(key && { "idempotency-key": key }) },
    requestContext: {
      domainName: "api.example",
      http: { method: "POST", path: "/payments" },
      authorizer: { jwt: { claims: { sub: user } } },
    },
    body: Buffer.from(body).toString("base64"),
    isBase64Encoded: true,
  } as unknown as APIGatewayProxyEventV2WithJWTAuthorizer;
}

export const queue = "arn:aws:sqs:eu-central-1:123456789012:orders";

/** A batch of messages; `message-1` is the first. */
export function batch(...bodies: string[]): SQSEvent {
  const records = bodies.map((body, index) => ({
    messageId: `message-${index + 1}`,
    body,
    eventSource: "aws:sqs",
    eventSourceARN: queue,
  }));
  return { Records: records } as unknown as SQSEvent;
}
export const message = (order: string) => JSON.stringify({ order });

type At = ReturnType<typeof staged>;

/** The handler of examples/lambda/payments. */
export async function loadPayments({ stage, service }: At) {
  type Handler = (
    event: APIGatewayProxyEventV2WithJWTAuthorizer,
    context: Context,
  ) => Promise<APIGatewayProxyStructuredResultV2>;
  const env = { ...stage.local.env(), LEDGER_URL: service.url };
  return (await importInNode<{ handler: Handler }>("lambda/payments.ts", env)).handler;
}

/** The handler of examples/lambda/queue. */
export async function loadQueue({ stage, service }: At) {
  type Handler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;
  const env = { ...stage.local.env(), WAREHOUSE_URL: service.url };
  return (await importInNode<{ handler: Handler }>("lambda/queue.ts", env)).handler;
}

/** The messages that are to be delivered again. */
export const failures = ({ batchItemFailures }: SQSBatchResponse) =>
  batchItemFailures.map(({ itemIdentifier }) => itemIdentifier);
export const orders = (...names: string[]) => names.map((name) => `${name}-${crypto.randomUUID()}`);
