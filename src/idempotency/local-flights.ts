import type { Settings } from "../lock/options.ts";
import type { Runtime } from "../runtime.ts";

/** What the calls of one single flight in this process have in common, while there are any. */
export interface LocalFlight<Flight> {
  /** What one of them has computed and is storing: it counts only where the record says that it is not stored. */
  computed: Flight | undefined;
  /** What could not be stored. */
  unstored: Flight | undefined;
  /** Until when one of them may be computing a new value behind the others, in ms since 1970. */
  refreshingUntil: number;
}

/** By runtime, which stands for the process, and by flight. No timer, and nothing that outlives the calls. */
const known = new WeakMap<Runtime, Map<string, LocalFlight<unknown> & { calls: number }>>();

/**
 * Joins the calls of a flight in this process. They share a value, and never a promise: one request must not wait for the
 * I/O of another one, which Workers forbid.
 *
 * @param id the flight's scope and key
 * @returns what they share, and a function to be called once, at the end of the call
 */
export function joinLocalFlight<Flight>(
  settings: Settings,
  id: readonly unknown[],
): { readonly local: LocalFlight<Flight>; readonly leave: () => void } {
  const { runtime, prefix, endpoints } = settings;
  const flights: NonNullable<ReturnType<typeof known.get>> = known.get(runtime) ?? new Map();
  known.set(runtime, flights);
  const name = JSON.stringify([endpoints.map((endpoint) => endpoint.name), prefix, id]);
  const local = flights.get(name) ?? {
    computed: undefined,
    unstored: undefined,
    refreshingUntil: 0,
    calls: 0,
  };
  flights.set(name, local);
  local.calls += 1;
  const leave = () => {
    local.calls -= 1;
    if (local.calls === 0) flights.delete(name);
  };
  return { local: local as LocalFlight<Flight>, leave };
}
