import process from "node:process";
import type { Invariant } from "../sim/assumptions.ts";
import { makeDigestSynchronous } from "../sim/digest.ts";
import { interceptFetch } from "../sim/http-link.ts";
import { scenarios } from "./scenarios.ts";
import { type Found, replay, search } from "./search.ts";

// A process that explores one scenario per message, or replays one of its schedules, and answers with a report.

/** What to do. */
export interface Order {
  readonly scenario: string;
  readonly bound?: number;
  /** Replays this schedule instead. */
  readonly schedule?: string;
  /** Only a violation of one of these ends the search. */
  readonly wanted?: readonly Invariant[];
  /** The most schedules. */
  readonly most?: number;
}

/** The result of an order, as JSON. */
export interface Report {
  readonly scenario: string;
  readonly bound: number;
  readonly schedules: number;
  readonly states: number;
  readonly depth: number;
  readonly isWhole: boolean;
  readonly violations: readonly Found[];
  readonly others: readonly Invariant[];
  readonly lines: readonly string[];
  /** ms of CPU. */
  readonly cpu: number;
}

// Thousands of errors a second are answers here; nobody reads their stacks.
Error.stackTraceLimit = 0;
makeDigestSynchronous();
interceptFetch();

const rejections: string[] = [];
process.on("unhandledRejection", (reason) => rejections.push(String(reason)));
process.on("disconnect", () => process.exit());
process.on("message", (order: Order) => {
  obey(order).then(
    (report) => process.send?.(report),
    (error) => {
      // A schedule that is not possible, for example.
      console.error(String(error));
      process.exit(1);
    },
  );
});

/** Explores, or replays. */
async function obey(order: Order): Promise<Report> {
  const { scenario: name, bound = 0, schedule, wanted, most } = order;
  const scenario = scenarios.find((each) => each.name === name);
  if (!scenario) throw new RangeError(`there is no scenario ${name}`);
  const before = process.cpuUsage();
  rejections.length = 0;
  const empty = { scenario: name, bound, schedules: 1, states: 0, depth: 0, isWhole: true, others: [] };
  let report: Omit<Report, "cpu">;
  if (schedule === undefined) {
    const { found, ...rest } = await search(scenario, { bound, wanted, most });
    report = { ...empty, ...rest, violations: found ? [found] : [], lines: [] };
  } else {
    const { lines, violations } = await replay(scenario, schedule);
    const spent = schedule.split(",").length;
    report = { ...empty, lines, violations: violations.map((each) => ({ ...each, schedule, spent })) };
  }
  // Node reports unhandled rejections only when it returns to its event loop, which no search lets it do.
  await new Promise((resolve) => setImmediate(resolve));
  const unhandled = rejections.map((reason) => callsEnd(`unhandled rejection: ${reason}`, bound));
  const { user, system } = process.cpuUsage(before);
  return {
    ...report,
    violations: [...report.violations, ...unhandled.slice(0, 1)],
    cpu: (user + system) / 1_000,
  };
}

/** It is not known in which schedule. */
function callsEnd(detail: string, bound: number): Found {
  return { invariant: "calls end", detail, at: 0, without: [], schedule: "", spent: bound };
}
