import { RedlockError } from "../errors.ts";

/**
 * The semaphore, latch or barrier is in use with another limit, count or number of parties, or was until its ttl passed.
 */
export class LimitMismatchError extends RedlockError {
  /** Name of the semaphore, latch or barrier. */
  readonly resource: string;
  /** The number that was given. */
  readonly limit: number;
  /** The number in use. */
  readonly inUse: number;

  constructor(resource: string, limit: number, inUse: number) {
    super("LIMIT_MISMATCH", `${JSON.stringify(resource)} is in use with ${inUse}, not ${limit}`);
    this.name = "LimitMismatchError";
    this.resource = resource;
    this.limit = limit;
    this.inUse = inUse;
  }
}

/** The waiting ended before all had arrived at a latch or a barrier. */
export class ArrivalsMissingError extends RedlockError {
  /** Name of the latch or barrier. */
  readonly resource: string;
  /** Number of arrivals expected. */
  readonly count: number;
  /** Number of known arrivals. */
  readonly arrived: number;
  /** How long the call waited, in ms. */
  readonly waited: number;

  constructor(resource: string, count: number, arrived: number, waited: number) {
    super("ARRIVALS_MISSING", `${arrived} of ${count} have arrived at ${JSON.stringify(resource)}`);
    this.name = "ArrivalsMissingError";
    this.resource = resource;
    this.count = count;
    this.arrived = arrived;
    this.waited = waited;
  }
}
