/**
 * A percentile, by nearest rank.
 *
 * @param {readonly number[]} values
 * @param {number} share from 0 to 1
 * @returns {number} NaN for no values
 *
 * @example
 * percentile([4, 1, 3, 2], 0.5); // 2
 */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

const phaseColumns = ["events", "sent", "executed", "replayed", "refused", "retried", " p50", " p99", " sec"];
const phaseName = 26;

/**
 * The head of the table whose lines {@link phaseLine} returns.
 *
 * @returns {string}
 *
 * @example
 * console.log(phaseHead());
 */
export function phaseHead() {
  const names = columns("phase", phaseColumns);
  return `${names}\n  ${"-".repeat(names.length - 2)}`;
}

/**
 * The requests and answers of a phase, as one line.
 *
 * @param {import("./senders.mjs").PhaseCounts} counts
 * @param {number} events
 * @param {number} seconds how long it took
 * @returns {string}
 *
 * @example
 * console.log(phaseLine(counts, 24, 3.5));
 */
export function phaseLine(counts, events, seconds) {
  const { name, sent, executed, replayed, refused, unavailable, failed, unexpected, durations } = counts;
  const percentiles = [0.5, 0.99].map((share) =>
    durations.length === 0 ? "" : percentile(durations, share).toFixed(0),
  );
  // Requests that had to be sent again.
  const retried = unavailable + failed + unexpected;
  const numbers = [events, sent, executed, replayed, refused, retried, ...percentiles, seconds.toFixed(1)];
  return columns(name, numbers);
}

function columns(name, values) {
  return `  ${name.padEnd(phaseName)}${values.map((value, index) => String(value).padStart(phaseColumns[index].length + 2)).join("")}`;
}

/**
 * Prints each check and whether it holds.
 *
 * @param {readonly { title: string, holds: boolean, found: string }[]} checks
 * @returns {boolean} whether all hold
 *
 * @example
 * process.exitCode = printChecks([{ title: "nothing twice", holds: true, found: "0" }]) ? 0 : 1;
 */
export function printChecks(checks) {
  for (const { title, holds, found } of checks) {
    console.log(`  ${holds ? "PASS" : "FAIL"}  ${title}: ${found}`);
  }
  return checks.every(({ holds }) => holds);
}
