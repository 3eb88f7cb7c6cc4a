import { EndpointError, QuorumError } from "../index.ts";

/** Why a request failed. `config`: the URL or the token cannot be used at all. */
export interface Failure {
  readonly kind: EndpointError["kind"] | "config";
  readonly status?: number | undefined;
  /** Without the endpoint's name. */
  readonly message: string;
}

/**
 * The failure of an endpoint.
 *
 * @throws what is none
 */
export function failureOf(error: unknown): Failure {
  const cause = error instanceof QuorumError ? error.cause : error;
  if (!(cause instanceof EndpointError)) throw error;
  const { kind, status, message, endpoint } = cause;
  return { kind, status, message: message.slice(`${endpoint}: `.length) };
}

/** Whether the server has understood the request, and says no. */
export function isRefusal({ kind, status = 0 }: Failure): boolean {
  return kind === "redis" || (kind === "http" && status < 429);
}
