import { checkScope } from "../idempotency/digest.ts";
import type { LockClient } from "../lock/client.ts";
import { checkResources } from "../lock/options.ts";
import type { WebhookProvider } from "../webhooks/index.ts";
import type { Delivery, PerRequest, RouteOptions } from "./options.ts";

export interface RequestOptions {
  readonly redlock: LockClient;
  readonly provider: WebhookProvider | undefined;
  readonly deadline: number | undefined;
  /**
   * Called once for a request with a key: with the verified delivery, or without a provider before the body is read.
   */
  admitted(delivery?: Delivery): Promise<DeliveryOptions>;
}

export interface DeliveryOptions {
  readonly scope: string | readonly string[] | undefined;
  readonly lock?: readonly string[] | undefined;
}

/** @param admit is called before the functions that get the delivery */
export async function routeFor<Context extends readonly unknown[]>(
  { redlock, provider, scope, lock, deadline }: RouteOptions<Context, never>,
  context: Context,
  admit?: (delivery: Delivery) => void,
): Promise<RequestOptions> {
  return {
    redlock: await valueFor(redlock, ...context),
    provider: await providerFor(provider, context),
    deadline: await valueFor(deadline, ...context),
    async admitted(delivery) {
      if (delivery) admit?.(delivery);
      const given = [...context, delivery as never] as const;
      // A scope of absent parts would be shared by unrelated callers, and a handler relies on its lock.
      return {
        scope: scope === undefined ? scope : checkOwner(await valueFor(scope, ...given)),
        lock: lock === undefined ? lock : checkResources(await valueFor(lock, ...given), "lock"),
      };
    },
  };
}

function checkOwner(scope: string | readonly string[] | undefined): string | readonly string[] {
  // If it is not a function's, the options were refused.
  if (scope !== undefined) return checkScope("scope", scope);
  throw new TypeError("the function scope returned undefined: is the request authenticated before this?");
}

export function valueFor<Value, Given extends readonly unknown[]>(
  option: PerRequest<Value, Given>,
  ...given: Given
): Value | Promise<Value> {
  return typeof option === "function"
    ? (option as (...given: Given) => Value | Promise<Value>)(...given)
    : option;
}

async function providerFor<Context extends readonly unknown[]>(
  provider: RouteOptions<Context>["provider"],
  context: Context,
): Promise<WebhookProvider | undefined> {
  try {
    return await valueFor(provider, ...context);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    // A provider that was not called takes the context for its options.
    const hint = "Is it set, and is the provider called, as in (c) => stripe({ secret: c.env.SECRET })?";
    throw new TypeError(`the function provider has failed: ${cause.message}. ${hint}`, { cause });
  }
}
