import { type Context, Hono, type MiddlewareHandler } from "hono";
import { expectTypeOf } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import {
  type IdempotencyVariables,
  type IdempotentRun,
  idempotent,
  type LockVariables,
  lock,
} from "../../src/hono/index.ts";
import { type Delivery, type WebhookOptions, withIdempotency } from "../../src/http/index.ts";
import type { RunContext } from "../../src/idempotency/index.ts";
import { type FencedLock, type Lock, Redlock } from "../../src/index.ts";
import { github } from "../../src/webhooks/index.ts";
import { post, provider } from "./stand.ts";

// Checked by `npm run types`; nothing of it runs.

const redlock = new Redlock({ endpoints: [memoryEndpoint()] });

interface Env {
  Bindings: { TENANT: string };
  Variables: { account: string };
}
const app = new Hono<Env>();

// withIdempotency: with a provider there is a delivery, and always a run; with a lock the run has a fence.
{
  const handled = (run: unknown, given?: Delivery) => new Response(`${run} ${given?.id}`);
  withIdempotency(
    post(),
    (_request, run, given) => {
      expectTypeOf(run).toEqualTypeOf<RunContext>();
      expectTypeOf(given).toEqualTypeOf<Delivery>();
      return handled(run, given);
    },
    { redlock, provider, scope: (given) => given.id },
  );
  withIdempotency(
    post(),
    (_request, run, given) => {
      expectTypeOf(run).toEqualTypeOf<RunContext | undefined>();
      expectTypeOf(given).toEqualTypeOf<Delivery | undefined>();
      return handled(run, given);
    },
    { redlock, scope: "tenant" },
  );
  // @ts-expect-error without a provider there may be no delivery
  withIdempotency(post(), () => new Response(), { redlock, scope: (given) => given.id });
  const options: WebhookOptions = { redlock, provider };
  withIdempotency(post(), (_request, _run, given) => new Response(given.id), options);
  withIdempotency(post(), (_, { fence }, { id }) => handled(fence.toFixed() + id), {
    ...options,
    lock: ({ id }) => id,
  });
  withIdempotency(
    post(),
    (_, run) => {
      expectTypeOf(run?.fence).toEqualTypeOf<number | undefined>();
      return handled(run);
    },
    { redlock, lock: "a" },
  );
}

// Callbacks get the route's Env, by a type argument or by an annotation.
app.post("/a", idempotent<Env>({ redlock, scope: (c) => [c.env.TENANT, c.var.account] }), (c) => c.text(""));
app.post("/b", lock<Env>({ redlock, resource: (c) => c.var.account }), (c) => c.text(""));
// @ts-expect-error no such binding
idempotent<Env>({ redlock, scope: (c) => c.env.TENNANT });
// @ts-expect-error a deadline is a number
lock<Env>({ redlock, deadline: (c) => c.env.TENANT, resource: "a" });

// The Env is inferred where another callback or a variable's type names it.
{
  const provided = (c: Context<Env>) => github({ secret: c.env.TENANT });
  idempotent({ redlock, provider: provided, scope: (c, { id }) => [c.env.TENANT, c.var.account, id] });
  const typed: MiddlewareHandler<Env> = idempotent({ redlock, scope: (c) => c.env.TENANT });
  // @ts-expect-error without one, callbacks know of no binding
  void [typed, app.post("/a", idempotent({ redlock, scope: (c) => c.env.TENANT }), (c) => c.text(""))];
}

// Later handlers get the variables that the middleware sets: with a provider a delivery and always a run, with fencing a
// fence.
{
  app.post("/a", idempotent<Env>({ redlock, provider: () => provider }), (c) => {
    expectTypeOf(c.var.webhook).toEqualTypeOf<Delivery>();
    expectTypeOf(c.var.idempotency).toEqualTypeOf<IdempotentRun>();
    return c.text(`${c.env.TENANT} ${c.var.account}`);
  });
  app.post("/b", idempotent({ redlock }), lock({ redlock, resource: "a" }), (c) => {
    expectTypeOf(c.var.webhook).toEqualTypeOf<Delivery | undefined>();
    expectTypeOf(c.var.idempotency).toEqualTypeOf<IdempotentRun | undefined>();
    expectTypeOf(c.var.lock).toEqualTypeOf<Lock>();
    expectTypeOf(c.env.TENANT).toBeString();
    return c.text(c.var.account);
  });
  app.post("/c", lock<Env>({ redlock, resource: (c) => c.var.account, fencing: true }), (c) => {
    expectTypeOf(c.var.lock).toEqualTypeOf<FencedLock>();
    return c.text(c.var.account);
  });
  app.post("/e", idempotent<Env>({ redlock, lock: (c) => c.var.account }), (c) => {
    expectTypeOf(c.var.idempotency?.fence).toEqualTypeOf<number | undefined>();
    return c.text("");
  });
  app.post("/f", idempotent<Env>({ redlock, provider, lock: (_, { id }) => id }), (c) => {
    expectTypeOf(c.var.idempotency.fence).toEqualTypeOf<number>();
    return c.text("");
  });
  const typed = new Hono<{ Variables: IdempotencyVariables & LockVariables<FencedLock> }>();
  typed.get("/", (c) => c.text(`${c.var.idempotency?.status} ${c.var.lock.fence.toFixed()}`));
}
