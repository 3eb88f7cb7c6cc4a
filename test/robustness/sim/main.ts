import process from "node:process";
import { type SimulationOptions, simulate } from "./simulate.ts";
import type { Violation } from "./world.ts";

// A process that simulates what it is told to by message, one seed after another, and answers each with a report.

/** What came of one seed, as JSON. */
export interface Report {
  readonly seed: number;
  readonly dropped: readonly string[];
  readonly violations: readonly Violation[];
  readonly excused: readonly Violation[];
  readonly counts: Readonly<Record<string, number>>;
  /** Virtual ms. */
  readonly length: number;
  readonly lines: readonly string[];
}

// Errors are answers here, thousands a second; nobody reads where they came from.
Error.stackTraceLimit = 0;

const rejections: string[] = [];
process.on("unhandledRejection", (reason) => rejections.push(String(reason)));

process.on("message", (order: SimulationOptions) => {
  void report(order).then((answer) => process.send?.(answer));
});

async function report(order: SimulationOptions): Promise<Report> {
  rejections.length = 0;
  try {
    const { counts, violations, length, ...rest } = await simulate(order);
    await rejectionsAreIn();
    return {
      ...rest,
      length,
      counts: Object.fromEntries(counts),
      violations: [
        ...violations,
        ...rejections.map((reason) => endless(length, `unhandled rejection: ${reason}`)),
      ],
    };
  } catch (error) {
    const { seed } = order;
    const violations = [endless(0, `the simulation failed: ${String(error)}`)];
    return { seed, dropped: [], violations, excused: [], counts: {}, length: 0, lines: [] };
  }
}

function endless(at: number, detail: string): Violation {
  return { invariant: "calls end", at, detail, without: [] };
}

/** Node looks for unhandled rejections when it comes back to its event loop, which no simulation lets it do. */
function rejectionsAreIn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
