import type { Settings } from "../lock/options.ts";
import type { Runtime } from "../runtime.ts";

/** What the calls of one single flight in this process have in common, while there are any. */
export interface LocalFlight<Flight> {
  /** What one of them has computed, while it is being stored, and from then on where it could not be. */
  computed: Flight | undefined;
  /** To be called once, at the end of the call. */
  leave(): void;
}

interface Calls {
  count: number;
  computed: unknown;
}

/** By runtime, which stands for the process, and by flight. No timer, and nothing that outlives the calls. */
const known = new WeakMap<Runtime, Map<string, Calls>>();

/**
 * Joins the calls of a flight in this process. They share a value, and never a promise: one request must not wait for the
 * I/O of another one, which Workers forbid.
 *
 * @param id the flight's scope and key
 */
export function joinLocalFlight<Flight>(settings: Settings, id: readonly unknown[]): LocalFlight<Flight> {
  const { runtime, prefix, endpoints } = settings;
  const flights = known.get(runtime) ?? new Map<string, Calls>();
  known.set(runtime, flights);
  const name = JSON.stringify([endpoints.map((endpoint) => endpoint.name), prefix, id]);
  const calls = flights.get(name) ?? { count: 0, computed: undefined };
  flights.set(name, calls);
  calls.count += 1;
  return {
    get computed() {
      return calls.computed as Flight | undefined;
    },
    set computed(flight) {
      calls.computed = flight;
    },
    leave() {
      calls.count -= 1;
      if (calls.count === 0) flights.delete(name);
    },
  };
}
