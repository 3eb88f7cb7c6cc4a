export type { Fingerprint, HttpEvent, HttpOptions, HttpRules } from "./options.ts";
export type { ProblemCode } from "./problem.ts";
export { withIdempotency } from "./with-idempotency.ts";
