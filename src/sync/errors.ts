import { RedlockError } from "../errors/errors.ts";

/** A latch is in use with another count, or a barrier with other parties. */
export class LimitMismatchError extends RedlockError {
  readonly resource: string;
  /** As this client asked for. */
  readonly count: number;
  readonly inUse: number;

  constructor(kind: "latch" | "barrier", resource: string, count: number, inUse: number) {
    const known = kind === "latch" ? `count ${inUse}` : `${inUse} parties`;
    const name = JSON.stringify(resource);
    super("LIMIT_MISMATCH", `${kind} ${name} already has ${known}; this client asked for ${count}`);
    this.name = "LimitMismatchError";
    this.resource = resource;
    this.count = count;
    this.inUse = inUse;
  }
}

/** The waiting ended before all had arrived at a latch or a barrier. */
export class ArrivalsMissingError extends RedlockError {
  readonly resource: string;
  readonly count: number;
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

/** `refreshOnce` has got a new value, and it may be stored nowhere. Only this error has the value. */
export class RefreshedNotWrittenError<Value = unknown> extends RedlockError {
  readonly key: string;
  /** Not enumerable, so that no log shows it. */
  declare readonly value: Value;

  constructor(key: string, value: Value, cause?: unknown) {
    const why = cause === undefined ? "" : `: ${(cause as Error | null)?.message}`;
    const message = `${JSON.stringify(key)} was refreshed, and the new value may be stored nowhere${why}`;
    super("REFRESHED_NOT_WRITTEN", message, cause === undefined ? undefined : { cause });
    this.name = "RefreshedNotWrittenError";
    this.key = key;
    Object.defineProperty(this, "value", { value });
  }
}

/** The mailbox takes no more messages. The message is not in it. */
export class MailboxFullError extends RedlockError {
  readonly resource: string;
  readonly maxSize: number;

  constructor(resource: string, maxSize: number) {
    super(
      "MAILBOX_FULL",
      `${maxSize} messages wait in the mailbox ${JSON.stringify(resource)}, and maxSize allows no more`,
    );
    this.name = "MailboxFullError";
    this.resource = resource;
    this.maxSize = maxSize;
  }
}
