import type { Endpoint } from "../endpoints/endpoint.ts";

/** By endpoint: how long its answers take, in ms; 0: the last one did not arrive in time. Rounds share it. */
export type Latencies = Map<Endpoint, number>;

/** How far apart, in ms, the answers of healthy endpoints may be. */
export const minLatency = 50;

/** Remembers how long an answer took. One slow answer is forgotten after a few rounds. */
export function recordLatency(latencies: Latencies, endpoint: Endpoint, took: number): void {
  latencies.set(endpoint, Math.max(1, took, 0.9 * (latencies.get(endpoint) ?? 0)));
}

/**
 * How long to wait for the endpoints that have not answered, in ms from the start of the round: half as long again as
 * the slowest of them usually takes; 0 where none of them answered in time in its last round.
 */
export function usefulWait(latencies: Latencies = new Map(), pending: readonly Endpoint[]): number {
  // An endpoint that is not known yet may be as far away as the slowest known one.
  const slowest = Math.max(1, ...latencies.values());
  const longest = Math.max(0, ...pending.map((endpoint) => latencies.get(endpoint) ?? slowest));
  return longest && Math.max(minLatency, 1.5 * longest);
}
