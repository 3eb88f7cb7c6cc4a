import type { Endpoint } from "../endpoints/endpoint.ts";

/** By endpoint: how long its answers take, in ms; 0: the last one did not arrive in time. Rounds share it. */
export type Latencies = Map<Endpoint, number>;

/** Remembers how long an answer took. One slow answer is forgotten after a few rounds. */
export function recordLatency(latencies: Latencies, endpoint: Endpoint, took: number): void {
  latencies.set(endpoint, Math.max(1, took, 0.9 * (latencies.get(endpoint) ?? 0)));
}
