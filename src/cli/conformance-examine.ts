import { setMaxListeners } from "node:events";
import type { Dialect, Endpoint, HttpEndpointOptions } from "../index.ts";
import { ConformanceSession, type ConformanceSettings, type SeenByNeed } from "./conformance-session.ts";
import { needs, requirements } from "./conformance-table.ts";
import { isRefusal } from "./doctor-advice.ts";
import { candidateOf, type Failure } from "./doctor-probe.ts";

// One conformance check: all rows of the table, one after another, and what they leave behind.

/** What was seen at one endpoint. A need that is absent was not asked. */
export interface Conformance {
  /** Its host; where the URL cannot be used: `endpoint 2`. */
  readonly endpoint: string;
  /** From 1. */
  readonly number: number;
  readonly dialect?: Dialect | undefined;
  readonly requests: number;
  /** Whether what it wrote is deleted. */
  readonly isClean: boolean;
  readonly seen: SeenByNeed;
}

/** Checks all endpoints, side by side. Rejects once all have deleted what they wrote. */
export async function examineConformance(
  endpoints: readonly HttpEndpointOptions[],
  settings: ConformanceSettings,
): Promise<Conformance[]> {
  const examined = await Promise.allSettled(
    endpoints.map((options, index) => examine(options, index + 1, settings)),
  );
  return examined.map((each) => {
    if (each.status === "rejected") throw each.reason;
    return each.value;
  });
}

async function examine(
  options: HttpEndpointOptions,
  number: number,
  settings: ConformanceSettings,
): Promise<Conformance> {
  const candidate = candidateOf(options);
  if ("failure" in candidate) return unusable(number, candidate.failure);
  return examineEndpoint(
    () => (candidateOf(options) as { endpoint: Endpoint }).endpoint,
    // Of two variables for one database, each has its own keys.
    { ...settings, id: `${settings.id}:${number}` },
    number,
  );
}

function unusable(number: number, failure: Failure): Conformance {
  return { endpoint: `endpoint ${number}`, number, requests: 0, isClean: true, seen: { rest: { failure } } };
}

/**
 * Checks one endpoint.
 *
 * @param open opens it; what is sent through one of these at the same time as through another shares no request
 */
export async function examineEndpoint(
  open: () => Endpoint,
  settings: ConformanceSettings,
  number = 1,
): Promise<Conformance> {
  // Every open request listens to it; Node warns of more than ten.
  setMaxListeners(0, settings.stop);
  const session = new ConformanceSession(open, settings);
  const { name, dialect } = session.endpoint;
  let isClean = false;
  try {
    await askAll(session);
  } finally {
    isClean = await session.clean();
  }
  const { seen } = session;
  // Who may not write has written nothing.
  const { failure } = seen.token ?? {};
  isClean ||= failure !== undefined && isRefusal(failure);
  return { endpoint: name, number, dialect, requests: session.requests, isClean, seen };
}

async function askAll(session: ConformanceSession): Promise<void> {
  const { seen } = session;
  for (const need of needs) {
    const { ask, isAsked = () => seen.token?.works === true } = requirements[need];
    if (isAsked(seen)) seen[need] = await session.observe(() => ask(session));
  }
}
