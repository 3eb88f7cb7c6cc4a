import { randomUUID } from "node:crypto";
import type { APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { expect, it } from "vitest";
import { type Delivery, githubDelivery, stripeDelivery } from "../../tools/deliveries.mjs";
import { bundleForNode, importInNode, loadOnTheEdge, type OnTheEdge, startInWorkerd } from "./bundle.ts";
import { lambdaEvent } from "./lambda-event.ts";
import { startServer } from "./node-process.ts";
import { staged } from "./stage.ts";

// The examples that answer a webhook, or a request with an idempotency key: on each platform the same happens.

interface Answer {
  readonly status: number;
  /** Whether it is the stored answer of an earlier request. */
  readonly replayed: boolean;
  readonly body: string;
}
/** Sends the webhook or request with this id, each time as its sender does. */
type Send = (id: string) => Promise<Answer>;

const at = staged();
const secret = "whsec_of-the-sender";
const env = () => at.local.env();

/** By example: starts it. */
const examples: Readonly<Record<string, (example: string) => Promise<Send>>> = {
  async "vercel/api/github.ts"(example) {
    const settings = { ...env(), GITHUB_WEBHOOK_SECRET: secret, DEPLOYMENTS_URL: at.service.url };
    const { POST } = await importInNode<Pick<OnTheEdge, "POST">>(example, settings);
    return async (id) => answerOf(await POST(requestOf(await push(id))));
  },
  async "next/app/api/payments/route.ts"(example) {
    // As `next build` does, without any variable.
    const { vm } = await loadOnTheEdge(example, {});
    expect(vm.evaluate("[EdgeRuntime, typeof require, typeof Buffer, example.maxDuration].join()")).toBe(
      "edge-runtime,undefined,undefined,20",
    );
    const settings = { ...env(), API_KEYS: '{"key-of-acme":"acme"}', LEDGER_URL: at.service.url };
    const on = await loadOnTheEdge(example, settings);
    return async (id) => {
      const answer = answerOf(await on.POST(requestOf(payment(id), on.vm.context.Request)));
      expect(on.work.length).toBeGreaterThan(0);
      return answer;
    };
  },
  async "hono-node/server.ts"(example) {
    const settings = { ...env(), API_KEYS: '{"key-of-acme":"acme"}', LEDGER_URL: at.service.url };
    const { url } = await startServer(await bundleForNode(example), settings);
    return async (id) => answerOf(await fetch(`${url}/payments`, payment(id)));
  },
  async "lambda/payments.ts"(example) {
    const handler = await loadHandler(example, { LEDGER_URL: at.service.url });
    const authorizer = { jwt: { claims: { sub: "user-1" } } };
    return (id) => invoke(handler, { path: "/payments", ...payment(id) }, { authorizer });
  },
  async "lambda-hono/webhook.ts"(example) {
    const handler = await loadHandler(example, { STRIPE_WEBHOOK_SECRET: secret });
    return (id) => invoke(handler, { ...checkout(id), path: "/webhooks/stripe" });
  },
  async "stripe-worker/src/index.ts"(example) {
    const bindings = { ...env(), STRIPE_WEBHOOK_SECRET: secret, ORDERS_URL: at.service.url };
    const worker = await startInWorkerd(example, { bindings });
    return async (id) =>
      answerOf(await worker.dispatchFetch("https://a.example/webhooks/stripe", post(checkout(id))));
  },
  async "lock-server/worker.ts"(example) {
    const worker = await startInWorkerd(example, {
      // There is no Redis.
      bindings: { LOCKS_TOKEN: "0123456789abcdef0123456789abcdef", GITHUB_WEBHOOK_SECRET: secret },
      durableObjects: { LOCKS: { className: "LockServer", useSQLite: true } },
    });
    return async (id) =>
      answerOf(await worker.dispatchFetch("https://a.example/webhooks/github", post(await push(id))));
  },
};

/** Those that do not call the service: their answer shows the run. */
const withoutService = ["lambda-hono/webhook.ts", "lock-server/worker.ts"];

it.each(Object.entries(examples))(
  "examples/%s acts once per request, and replays the answer",
  async (name, start) => {
    const send = await start(name);
    const [id, other] = [randomUUID(), randomUUID()];
    const first = await send(id);
    expect([Math.floor(first.status / 100), first.replayed]).toEqual([2, false]);
    expect(await send(id)).toEqual({ ...first, replayed: true });
    expect(await send(other)).toMatchObject({ status: first.status, replayed: false });
    expect(at.service.calls).toHaveLength(withoutService.includes(name) ? 0 : 2);
  },
);

const push = (after: string) =>
  githubDelivery(secret, "push", { ref: "refs/heads/main", after, repository: { id: 7 } }, randomUUID());
const checkout = (id: string) =>
  stripeDelivery(secret, "checkout.session.completed", { id: `cs_${id}` }, `evt_${id}`);
const payment = (key: string) => ({
  method: "POST",
  headers: { authorization: "Bearer key-of-acme", "idempotency-key": key },
  body: '{"amount":10}',
});

const post = ({ headers, body }: Pick<Delivery, "headers" | "body">) => ({ method: "POST", headers, body });
/** `Class`: the Edge runtime has its own. */
const requestOf = (delivery: Pick<Delivery, "headers" | "body">, Class = Request) =>
  new Class("https://shop.example/", post(delivery));

/** What Node's, workerd's and the Edge runtime's responses have in common. */
interface AnyResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  text(): Promise<string>;
}

async function answerOf(response: AnyResponse): Promise<Answer> {
  const replayed = response.headers.get("idempotent-replayed") === "true";
  return { status: response.status, replayed, body: await response.text() };
}

type Handler = (event: unknown, context: Context) => Promise<APIGatewayProxyStructuredResultV2>;

const loadHandler = async (example: string, settings: Record<string, string>): Promise<Handler> =>
  (await importInNode<{ handler: Handler }>(example, { ...env(), ...settings })).handler;

/** Calls a function of Lambda as an HTTP API does. */
async function invoke(
  handler: Handler,
  request: Pick<Delivery, "path" | "headers" | "body">,
  context: object = {},
): Promise<Answer> {
  const event = lambdaEvent(request, context);
  const result = await handler(event, { getRemainingTimeInMillis: () => 30_000 } as Context);
  const replayed = result.headers?.["idempotent-replayed"] === "true";
  return { status: result.statusCode!, replayed, body: result.body ?? "" };
}
