export type { FromContext, UntypedEnv } from "./context.ts";
export {
  type IdempotencyVariables,
  type IdempotentOptions,
  type IdempotentRun,
  idempotent,
} from "./idempotent.ts";
export { type FencedLockRouteOptions, type LockRouteOptions, type LockVariables, lock } from "./lock.ts";
