import { setTimeout as sleep } from "node:timers/promises";
import { forged, send } from "../deliveries.mjs";

// As GitHub, which closes the connection after that time.
const timeout = 10_000;

// Senders retry after a 5xx, with growing pauses. Real ones pause for minutes.
const mostAttempts = 12;
const firstPause = 150;
const longestPause = 2_000;

/** Counts of the requests and answers of one phase of the demo. */
export class PhaseCounts {
  /** HTTP requests to the Worker. */
  sent = 0;
  executed = 0;
  replayed = 0;
  /** Requests with bad signatures, and how many of them were refused. */
  forged = 0;
  refused = 0;
  /** Answers 503: busy, or no quorum. */
  unavailable = 0;
  /** Answers 500. */
  failed = 0;
  /** Other answers, and requests without an answer. */
  unexpected = 0;
  /** Senders that gave up. */
  givenUp = 0;
  /** Duration of each request, in ms. */
  durations = [];

  constructor(name) {
    this.name = name;
  }
}

/**
 * Sends a delivery until it is answered with success, as a real sender does.
 *
 * @param {string} url where the Worker listens
 * @param {import("../deliveries.mjs").Delivery} delivery
 * @param {PhaseCounts} counts
 * @param {AbortSignal} signal when it aborts, the sender gives up
 * @returns {Promise<string | undefined>} the body of the success; undefined when the sender gave up
 *
 * @example
 * const body = await deliver(worker.url, delivery, new PhaseCounts("healthy"), signal);
 */
export async function deliver(url, delivery, counts, signal) {
  for (let attempt = 1; attempt <= mostAttempts && !signal.aborted; attempt++) {
    const body = await attemptOnce(url, delivery, counts, signal);
    if (body !== undefined) return body;
    const pause = Math.min(longestPause, firstPause * 2 ** (attempt - 1));
    await Promise.allSettled([sleep(pause * (0.5 + Math.random() / 2), undefined, { signal })]);
  }
  counts.givenUp += 1;
  return undefined;
}

async function attemptOnce(url, delivery, counts, signal) {
  counts.sent += 1;
  const began = performance.now();
  try {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
    const response = await send(url, delivery, limited);
    const body = await response.text();
    counts.durations.push(performance.now() - began);
    if (response.status === 200) {
      counts[response.headers.has("idempotent-replayed") ? "replayed" : "executed"] += 1;
      return body;
    }
    const { status } = response;
    counts[{ 503: "unavailable", 500: "failed" }[status] ?? "unexpected"] += 1;
  } catch {
    // No answer, or not in time. Whether the event took effect is unknown, so it is sent again.
    counts.unexpected += 1;
  }
  return undefined;
}

/**
 * Sends a delivery once with a body that was not signed.
 *
 * @param {string} url where the Worker listens
 * @param {import("../deliveries.mjs").Delivery} delivery
 * @param {PhaseCounts} counts
 * @returns {Promise<void>}
 *
 * @example
 * await forge(worker.url, delivery, counts);
 */
export async function forge(url, delivery, counts) {
  counts.sent += 1;
  counts.forged += 1;
  const { status } = await send(url, forged(delivery), AbortSignal.timeout(timeout));
  counts[status === 401 ? "refused" : "unexpected"] += 1;
}

/**
 * Sends deliveries, several at once and each in several concurrent copies. Every fourth is also sent forged.
 *
 * @param {string} url where the Worker listens
 * @param {readonly import("../deliveries.mjs").Delivery[]} deliveries
 * @param {object} options
 * @param {PhaseCounts} options.counts
 * @param {AbortSignal} options.signal when it aborts, all senders give up
 * @param {number} options.atOnce how many deliveries
 * @param {number} options.copies of each
 * @param {(done: number) => Promise<void>} [options.onProgress] called before the first and after each delivery, with the
 *   share that has ended, from 0 to 1; the next delivery waits for it
 * @param {(delivery: import("../deliveries.mjs").Delivery, body: string) => void} options.onAnswer called for every
 *   success
 * @returns {Promise<void>}
 *
 * @example
 * await deliverAll(worker.url, deliveries, { counts, signal, atOnce: 6, copies: 5, onProgress, onAnswer });
 */
export async function deliverAll(url, deliveries, options) {
  const { counts, signal, atOnce, copies, onProgress = async () => undefined, onAnswer } = options;
  const queue = [...deliveries.entries()];
  let done = 0;
  async function work() {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const [index, delivery] = next;
      const sending = Array.from({ length: copies }, async () => {
        const body = await deliver(url, delivery, counts, signal);
        if (body !== undefined) onAnswer(delivery, body);
      });
      if (index % 4 === 0) sending.push(forge(url, delivery, counts));
      await Promise.all(sending);
      done++;
      await onProgress(done / deliveries.length);
    }
  }
  await onProgress(0);
  await Promise.all(Array.from({ length: atOnce }, work));
}
