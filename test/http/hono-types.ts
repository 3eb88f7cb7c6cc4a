import { type Context, Hono, type MiddlewareHandler } from "hono";
import { createFactory } from "hono/factory";
import { expectTypeOf } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import {
  type IdempotencyVariables,
  type IdempotentRun,
  idempotent,
  type LockVariables,
  lock,
} from "../../src/hono/index.ts";
import type { Delivery } from "../../src/http/index.ts";
import { type FencedLock, type Lock, Redlock } from "../../src/index.ts";
import { github } from "../../src/webhooks/index.ts";
import { provider } from "./stand.ts";

// Checked by `npm run types`; nothing of it runs.

const redlock = new Redlock({ endpoints: [memoryEndpoint()] });

interface Env {
  Bindings: { TENANT: string };
  Variables: { account: string };
}

// Callbacks get the route's Env, by a type argument or by an annotation.
{
  const app = new Hono<Env>();
  app.post("/a", idempotent<Env>({ redlock, scope: (c) => [c.env.TENANT, c.var.account] }), (c) =>
    c.text(""),
  );
  app.post("/b", lock<Env>({ redlock, resource: (c) => c.var.account }), (c) => c.text(""));
  app.post("/c", idempotent({ redlock, scope: (c: Context<Env>) => c.get("account") }), (c) => c.text(""));
  idempotent<Env>({
    redlock(c) {
      expectTypeOf(c).toEqualTypeOf<Context<Env>>();
      return redlock;
    },
    // @ts-expect-error no such binding
    scope: (c) => c.env.TENNANT,
  });
  lock<Env>({
    redlock: (c) => {
      expectTypeOf(c.env).toEqualTypeOf<{ TENANT: string }>();
      return redlock;
    },
    // @ts-expect-error a deadline is a number
    deadline: (c) => c.env.TENANT,
    // @ts-expect-error no such variable
    resource: (c) => c.var.acount,
  });
  // @ts-expect-error a scope is a text
  idempotent({ redlock, scope: (c: Context<Env>) => c.env.TENANT.length });
}

// Without an Env, callbacks know of no binding and no variable, also on the route of an app that has them.
{
  const app = new Hono<Env>();
  // @ts-expect-error TypeScript cannot infer the Env from the route
  app.post("/a", idempotent({ redlock, scope: (c) => c.env.TENANT }), (c) => c.text(""));
  // @ts-expect-error so a misspelt binding is as unknown
  app.post("/a", idempotent({ redlock, scope: (c) => c.env.TENNANT }), (c) => c.text(""));
  // @ts-expect-error and a variable
  app.post("/b", lock({ redlock, resource: (c) => c.get("account") }), (c) => c.text(""));
  const shared = (c: { env: { TENANT: string } }) => c.env.TENANT;
  // @ts-expect-error nothing says that there is such a binding
  app.post("/c", idempotent({ redlock, scope: shared }), (c) => c.text(""));
  app.post("/c", idempotent<Env>({ redlock, scope: shared }), (c) => c.text(""));
  app.post("/d", idempotent({ redlock, scope: (c) => c.req.param("tenant") ?? "none" }), (c) => c.text(""));
}

// The Env is inferred where something names it: another callback, a variable's type, createMiddleware.
{
  const app = new Hono<Env>();
  const provided = (c: Context<Env>) => github({ secret: c.env.TENANT });
  const inferred = idempotent({
    redlock,
    provider: provided,
    scope: (c, { id, body }) => [c.env.TENANT, c.var.account, id, `${body.length}`],
  });
  app.post("/a", inferred, (c) => c.text(`${c.env.TENANT} ${c.var.account} ${c.var.webhook.id}`));
  // @ts-expect-error no such binding
  idempotent({ redlock, provider: provided, scope: (c) => c.env.TENNANT });
  const typed: MiddlewareHandler<Env> = idempotent({ redlock, scope: (c) => c.env.TENANT });
  // @ts-expect-error no such binding
  const wrong: MiddlewareHandler<Env> = idempotent({ redlock, scope: (c) => c.env.TENNANT });
  const { createMiddleware } = createFactory<Env>();
  const made = createMiddleware(idempotent({ redlock, scope: (c) => [c.env.TENANT, c.var.account] }));
  // @ts-expect-error no such variable
  createMiddleware(idempotent({ redlock, scope: (c) => c.var.acount }));
  void [typed, wrong, made];
}

// With a provider there is a delivery, and always a run.
{
  const app = new Hono<Env>();
  app.post("/a", idempotent({ redlock, provider }), (c) => {
    expectTypeOf(c.var.webhook).toEqualTypeOf<Delivery>();
    expectTypeOf(c.var.idempotency).toEqualTypeOf<IdempotentRun>();
    return c.text(`${c.env.TENANT} ${c.var.idempotency.key}`);
  });
  app.post("/b", idempotent<Env>({ redlock, provider: () => provider }), (c) => {
    expectTypeOf(c.var.webhook).toEqualTypeOf<Delivery>();
    return c.text(c.var.account);
  });
  app.post("/c", idempotent({ redlock }), (c) => {
    expectTypeOf(c.var.webhook).toEqualTypeOf<Delivery | undefined>();
    return c.text("");
  });
  idempotent({
    redlock,
    provider,
    scope(_, delivery) {
      expectTypeOf(delivery).toEqualTypeOf<Delivery>();
      return delivery.id;
    },
  });
  // @ts-expect-error without a provider there may be none
  idempotent({ redlock, scope: (_, delivery) => delivery.id });
}

// Later handlers get the variables that the middleware sets.
{
  const app = new Hono<Env>();
  app.post("/a", idempotent({ redlock }), lock({ redlock, resource: "a" }), (c) => {
    expectTypeOf(c.var.idempotency).toEqualTypeOf<IdempotentRun | undefined>();
    expectTypeOf(c.var.lock).toEqualTypeOf<Lock>();
    expectTypeOf(c.var.lock.fence).toEqualTypeOf<number | undefined>();
    expectTypeOf(c.env.TENANT).toBeString();
    expectTypeOf(c.var.account).toBeString();
    // @ts-expect-error it may be missing
    return c.text(c.var.idempotency.key);
  });
  app.use(idempotent<Env>({ redlock })).post("/b", (c) => {
    expectTypeOf(c.var.idempotency).toEqualTypeOf<IdempotentRun | undefined>();
    return c.text(c.var.account);
  });
  const typed = new Hono<{ Variables: IdempotencyVariables & LockVariables<FencedLock> }>();
  typed.get("/", (c) => c.text(`${c.var.idempotency?.status} ${c.var.lock.fence.toFixed()}`));
}

// With fencing the lock has a fence.
{
  const app = new Hono<Env>();
  app.post("/a", lock({ redlock, resource: "a", fencing: true }), (c) => {
    expectTypeOf(c.var.lock).toEqualTypeOf<FencedLock>();
    return c.text(c.var.lock.fence.toFixed());
  });
  app.post("/b", lock<Env>({ redlock, resource: (c) => c.var.account, fencing: true }), (c) => {
    expectTypeOf(c.var.lock.fence).toBeNumber();
    return c.text(c.var.account);
  });
  app.post("/c", lock({ redlock, resource: "a", fencing: Math.random() > 2 }), (c) => {
    expectTypeOf(c.var.lock).toEqualTypeOf<Lock>();
    return c.text("");
  });
}

// The run of a handler behind a lock has a fence.
{
  const app = new Hono<Env>();
  app.post("/a", idempotent<Env>({ redlock, lock: (c) => c.var.account }), (c) => {
    expectTypeOf(c.var.idempotency?.fence).toEqualTypeOf<number | undefined>();
    return c.text("");
  });
  app.post("/b", idempotent<Env>({ redlock, provider, lock: (_, { id }) => id }), (c) => {
    expectTypeOf(c.var.idempotency.fence).toEqualTypeOf<number>();
    return c.text("");
  });
  app.post("/c", idempotent<Env>({ redlock, provider }), (c) => {
    expectTypeOf(c.var.idempotency.fence).toEqualTypeOf<number | undefined>();
    return c.text("");
  });
  // @ts-expect-error no such variable
  idempotent<Env>({ redlock, lock: (c) => c.var.acount });
}
