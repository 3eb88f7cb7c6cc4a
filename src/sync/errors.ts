import { RedlockError } from "../errors.ts";

/** Permits of this semaphore are, or were until lately, given out under another limit. */
export class LimitMismatchError extends RedlockError {
  /** The semaphore's name. */
  readonly resource: string;
  /** The limit asked for. */
  readonly limit: number;
  /** The limit in use. */
  readonly inUse: number;

  constructor(resource: string, limit: number, inUse: number) {
    super(
      "LIMIT_MISMATCH",
      `semaphore ${JSON.stringify(resource)} has a limit of ${inUse} in use, not of ${limit}`,
    );
    this.name = "LimitMismatchError";
    this.resource = resource;
    this.limit = limit;
    this.inUse = inUse;
  }
}
