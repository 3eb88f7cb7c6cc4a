/**
 * Describe a sender of webhooks that is not in the list.
 *
 * @module redlock-edge/webhooks/custom
 */
export { sha256 } from "../../runtime/bytes.ts";
export { bodyHash, bodyId } from "../body.ts";
export * from "../encoding.ts";
export { requireHeader, requireId, requireSignature, type SignatureForm } from "../header.ts";
export { requireJwt, type SignedJwt } from "../jwt.ts";
export type { ToleranceOptions } from "../options.ts";
export type { HmacId, HmacTime } from "../scheme.ts";
export {
  constantTimeEqual,
  type Key,
  type SignatureAlgorithm,
  type SignatureCheck,
  type SignedParts,
  signatureCheck,
} from "../signature-check.ts";
export { parseSeconds, type ToleranceCheck, toleranceCheck } from "../tolerance.ts";
export type { ReadSigned, SignedContent, SignedRequest } from "../verifier.ts";
export { type SignatureProviderOptions, signatureProvider } from "./signature-provider.ts";
