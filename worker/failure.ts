import type { EndpointError, EndpointErrorKind } from "../src/index.ts";

/** Why an endpoint's answer does not count: no text of the endpoint's own, which may contain anything. */
export interface EndpointFailure {
  readonly kind: EndpointErrorKind;
  /** HTTP status, where there was an HTTP answer. */
  readonly status?: number;
}

/**
 * What of an endpoint's error the journal and the health show.
 *
 * @example
 * failureOf(error); // { kind: "http", status: 401 }
 */
export function failureOf({ kind, status }: EndpointError): EndpointFailure {
  return { kind, ...(status !== undefined && { status }) };
}

/**
 * A failure in words.
 *
 * @example
 * failureText({ kind: "http", status: 401 }); // "HTTP 401: token refused"
 */
export function failureText({ kind, status }: EndpointFailure): string {
  switch (kind) {
    case "timeout":
      return "no answer in time";
    case "network":
      return "no connection";
    case "http":
      return `HTTP ${status}${status === 401 || status === 403 ? ": token refused" : ""}`;
    case "redis":
      return "an error of Redis";
    case "malformed":
      return "an answer that Redis does not give";
  }
}
