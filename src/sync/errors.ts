import { RedlockError } from "../errors.ts";

/** A semaphore's limit, a latch's count or a barrier's parties are, or were until lately, another number. */
export class LimitMismatchError extends RedlockError {
  /** The semaphore's name, or the latch's or barrier's. */
  readonly resource: string;
  /** The number asked for. */
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

/** The waiting was over before so many had arrived at a latch or a barrier. */
export class ArrivalsMissingError extends RedlockError {
  /** The name of the latch or barrier. */
  readonly resource: string;
  /** How many have to arrive. */
  readonly count: number;
  /** How many are known to have arrived. */
  readonly arrived: number;
  /** How long it waited, in ms. */
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
