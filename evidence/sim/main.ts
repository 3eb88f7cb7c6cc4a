import process from "node:process";
import { type Simulation, type SimulationOptions, simulate } from "./simulate.ts";
import type { Violation } from "./world/world.ts";

// A process that runs one simulation per message, and answers each with a report.

// The ttls that seeds draw are shorter than anybody would choose, and the library's hints about them are noise here.
console.warn = () => undefined;

// Thousands of errors a second are answers here; nobody reads their stacks.
Error.stackTraceLimit = 0;

const rejections: string[] = [];
process.on("unhandledRejection", (reason) => rejections.push(String(reason)));

process.on("message", (options: SimulationOptions) => {
  void report(options).then((answer) => process.send?.(answer));
});

async function report(options: SimulationOptions): Promise<Simulation> {
  rejections.length = 0;
  try {
    const simulation = await simulate(options);
    await rejectionsAreReported();
    const { violations, length } = simulation;
    const unhandled = rejections.map((reason) => callsEnd(length, `unhandled rejection: ${reason}`));
    return { ...simulation, violations: [...violations, ...unhandled] };
  } catch (error) {
    const { seed } = options;
    const violations = [callsEnd(0, `the simulation failed: ${String(error)}`)];
    return { seed, dropped: [], violations, excused: [], counts: {}, length: 0, lines: [] };
  }
}

function callsEnd(at: number, detail: string): Violation {
  return { invariant: "calls end", at, detail, without: [] };
}

/** Node reports unhandled rejections only when it returns to its event loop, which no simulation lets it do. */
function rejectionsAreReported(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
