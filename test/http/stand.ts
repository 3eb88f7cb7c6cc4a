import { createHmac } from "node:crypto";
import { Hono } from "hono";
import { afterAll, beforeAll } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import { type Delivery, type HttpOptions, withIdempotency } from "../../src/http/index.ts";
import type { RunContext } from "../../src/idempotency/index.ts";
import { github } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { type Gate, gate } from "../support/link.ts";
import { type Client, clientOf, type OpenStore, type Store, storeOf } from "../support/stores.ts";

/** What handles a request that got through. */
export type Handler = (
  request: Request,
  run: RunContext | undefined,
  delivery?: Delivery,
) => Promise<Response> | Response;

/** A server with one route for everything. */
export type Stand = (handler: Handler, options: HttpOptions) => (request: Request) => Promise<Response>;

/** The middleware in front of a handler that reads the context's request. */
export const honoStand: Stand = (handler, options) => {
  const { deadline, scope, lock, ...rules } = options;
  const middleware = idempotent({
    ...rules,
    ...(deadline !== undefined && { deadline }),
    ...(scope !== undefined && {
      scope: typeof scope === "function" ? (_: unknown, delivery?: Delivery) => scope(delivery) : scope,
    }),
    lock: typeof lock === "function" ? (_, delivery) => lock(delivery) : lock,
  });
  const app = new Hono();
  app.all("*", middleware, (c) => handler(c.req.raw, c.var.idempotency, c.var.webhook));
  // As Hono does, without its note on the console.
  app.onError((_, c) => c.text("Internal Server Error", 500));
  return async (request) => app.fetch(request);
};

export const plainStand: Stand = (handler, options) => (request) =>
  withIdempotency(request, handler, options);

export const stands: readonly (readonly [name: string, stand: Stand])[] = [
  ["Hono", honoStand],
  ["plain", plainStand],
];

/** One endpoint and three. Embedded, because requests do not see the engine. */
export const stores: readonly Store[] = [1, 3].map((count) =>
  storeOf({ engine: "embedded", count, dialect: "upstash", via: "memory" }),
);

/** Each stand and each store occurs. */
export const everywhere: readonly (readonly [title: string, stand: Stand, store: Store])[] = stands.map(
  ([name, stand], index) => [`${name}, ${stores[index]!.title}`, stand, stores[index]!],
);

/** A store for the tests beside the call, and a client of it. */
export function opened({ open }: Pick<Store, "open"> = stores[0]!): {
  readonly store: OpenStore;
  readonly client: Client;
} {
  let store: OpenStore;
  let client: Client;
  beforeAll(async () => {
    store = await open();
    client = clientOf(store);
  });
  afterAll(() => store.close());
  return {
    get store() {
      return store;
    },
    get client() {
      return client;
    },
  };
}

/** A request with a key of its own. */
export function post(
  key: string | null = freshKey(),
  { path = "/payments", body = '{"amount":10}', ...init }: RequestInit & { path?: string } = {},
): Request {
  const headers = new Headers(init.headers);
  if (key !== null) headers.set("idempotency-key", key);
  return new Request(`https://api.example${path}`, { method: "POST", body, ...init, headers });
}

export const secret = "it is a secret to everybody";
export const provider = github({ secret, id: "header", name: "github" });

/** A delivery as GitHub sends it. */
export function delivery(
  id: string,
  {
    body = '{"zen":"ok"}',
    signedWith = secret,
    ...init
  }: RequestInit & { body?: string; signedWith?: string } = {},
): Request {
  const signature = createHmac("sha256", signedWith).update(body).digest("hex");
  const headers = { "x-hub-signature-256": `sha256=${signature}`, "x-github-delivery": id };
  return new Request("https://api.example/hook", { method: "POST", body, headers, ...init });
}

/** A handler that runs until the test gives it a response; counts its runs. */
export function slowHandler(): {
  readonly handler: Handler;
  readonly started: Gate;
  readonly finish: (response: Response) => void;
  runs: number;
} {
  const started = gate();
  const result = gate<Response>();
  const slow = {
    started,
    finish: result.open,
    runs: 0,
    handler() {
      slow.runs += 1;
      started.open();
      return result.passed;
    },
  };
  return slow;
}

/** Status, headers and bytes of a response. */
export async function seen(response: Response): Promise<{
  status: number;
  headers: Record<string, string>;
  bytes: Uint8Array;
}> {
  const headers = Object.fromEntries(response.headers);
  return { status: response.status, headers, bytes: new Uint8Array(await response.arrayBuffer()) };
}

/** What a problem says, after checking that it is one (RFC 9457). */
export async function problemIn(response: Response): Promise<{ status: number; code: string }> {
  if (response.headers.get("content-type") !== "application/problem+json") {
    throw new Error(`no problem: ${response.status} ${await response.text()}`);
  }
  const problem = (await response.json()) as { status: number; code: string; title: string };
  if (problem.status !== response.status || !problem.title) throw new Error(JSON.stringify(problem));
  return { status: problem.status, code: problem.code };
}
