import type { Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors/errors.ts";
import type { Lock } from "../lock/lock.ts";
import { retry } from "../quorum/retry.ts";
import { isVeto } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { keepAlive, settledWithin } from "../runtime/runtime.ts";
import { type RunRecord, recordText, type UnstoredReason } from "./record.ts";
import { withinBytes } from "./result.ts";
import { type RunRequest, settleTimeout } from "./run-request.ts";

export class Completion {
  text: string;
  former: string | undefined;
  readonly #request: RunRequest<unknown>;
  #record: RunRecord;
  readonly #underWay: Promise<unknown>[] = [];
  /** Endpoints that refused the result for its size would do so again. */
  readonly #refusals = new Map<Endpoint, unknown>();

  constructor(request: RunRequest<unknown>, record: RunRecord) {
    this.#request = request;
    this.#record = withinBytes(record, request.maxResult);
    this.text = recordText(this.#record);
  }

  get unstored(): UnstoredReason | undefined {
    return this.#record.unstored;
  }

  async storeOne(endpoint: Endpoint, put: () => Promise<CellAnswer>): Promise<CellAnswer> {
    if (!this.unstored && this.#refusals.has(endpoint)) throw this.#refusals.get(endpoint);
    const storing = put();
    this.#underWay.push(storing.catch(() => undefined));
    try {
      return await storing;
    } catch (error) {
      if (isSizeError(error)) this.#refusals.set(endpoint, error);
      throw error;
    }
  }

  /**
   * Releases the lock, which stores the record. Tries again within the lease, after a while in the background.
   *
   * @returns true: stored. False: another run took over. Undefined: too few endpoints have answered
   */
  async store(lock: Lock): Promise<boolean | undefined> {
    const { settings } = this.#request;
    const { backoff, runtime } = settings;
    const wait = lock.remaining();
    let isStored = await this.#release(lock);
    if (isStored !== undefined) return isStored;
    // It was the first attempt.
    let isFirst = true;
    const retries = retry<void>({ backoff, runtime, wait }, {}, async () => {
      if (!isFirst) isStored = await this.#release(lock);
      isFirst = false;
      return isStored === undefined ? { next: "pause", end: () => undefined } : { value: undefined };
      // The effect has happened, so an error of the user's backoff ends only the retries.
    }).catch(() => undefined);
    if (!keepAlive(settings, retries)) await settledWithin(runtime, settleTimeout(settings), retries);
    return isStored;
  }

  async #release(lock: Lock): Promise<boolean | undefined> {
    const isStored = await lock.release();
    return isStored === undefined && (await this.#leavesOut()) ? this.#release(lock) : isStored;
  }

  /** Without a record the effect would be repeated, so a result that is too large for a quorum is left out. */
  async #leavesOut(): Promise<boolean> {
    const { settings } = this.#request;
    if (this.unstored || this.#refusals.size === 0) return false;
    // Late answers may be refusals too.
    await settledWithin(settings.runtime, settings.timeout, Promise.all(this.#underWay));
    if (!isVeto(this.#refusals.size, settings.endpoints.length)) return false;
    this.former = this.text;
    this.#record = withinBytes(this.#record, 0);
    this.text = recordText(this.#record);
    return true;
  }
}

/** Upstash answers "max request size exceeded", Redis "exceeds maximum allowed size", a gateway 413. */
function isSizeError(error: unknown): boolean {
  const { status, message } = error as Partial<EndpointError>;
  return status === 413 || /\bmax(imum)?\b.*\bsize\b/i.test(String(message));
}
