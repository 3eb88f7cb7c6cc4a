import { checkScope } from "../check.ts";
import { checkResources } from "../lock/options.ts";
import type { VerifiedWebhook, WebhookProvider } from "../webhooks/index.ts";

/** A webhook's delivery whose signature was verified. */
export interface Delivery extends Omit<VerifiedWebhook, "secretTags"> {
  /** The provider's name. */
  readonly provider: string;
  /** Names that the id is unique within, besides the provider's name; empty if the id alone identifies the event. */
  readonly scope: readonly string[];
  /** The bytes that were verified. They are not copied: do not change them. */
  readonly body: Uint8Array;
}

/** What its provider and the request say of a verified delivery. Secrets' tags concern the key only. */
export function deliveryOf(
  { name }: WebhookProvider,
  { secretTags: _, ...verified }: VerifiedWebhook,
  body: Uint8Array,
): Delivery {
  return { ...verified, scope: verified.scope ?? [], provider: name, body };
}

/** An option's value, or a function that returns it for each request. No option's own value is a function. */
export type PerRequest<Value, Given extends readonly unknown[]> =
  | Value
  | ((...given: Given) => Value | Promise<Value>);

/** An option's value for this request. */
export function valueFor<Value, Given extends readonly unknown[]>(
  option: PerRequest<Value, Given>,
  ...given: Given
): Value | Promise<Value> {
  return typeof option === "function"
    ? (option as (...given: Given) => Value | Promise<Value>)(...given)
    : option;
}

/** The scope for this request. A function must return one: a scope of absent parts would be shared by unrelated callers. */
export async function scopeFor<Given extends readonly unknown[]>(
  option: PerRequest<string | readonly string[], Given> | undefined,
  ...given: Given
): Promise<string | readonly string[] | undefined> {
  return option === undefined ? undefined : checkScope(await valueFor(option, ...given));
}

/** The resources to lock for this request. A function must return them: a handler that relies on a lock gets one. */
export async function lockFor<Given extends readonly unknown[]>(
  option: PerRequest<string | readonly string[], Given> | undefined,
  ...given: Given
): Promise<readonly string[] | undefined> {
  return option === undefined ? undefined : checkResources(await valueFor(option, ...given), "lock");
}
