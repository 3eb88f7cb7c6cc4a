import type { KeyReport } from "./explain-key.ts";
import { counted, duration, labelled, printable, table, wrapped } from "./text.ts";

// Whether a key is dead, for people and as JSON. No I/O.

/** `unknown`: too few endpoints answered, or it depends on the `maxAttempts` of the program. */
export type DeadState = "dead" | "alive" | "last-attempt" | "unknown";

/** Whether a key is dead, and why. */
export interface DeadReport {
  readonly key: string;
  readonly state: DeadState;
  readonly why: string;
  readonly attempts: number;
  readonly maxAttempts?: number | undefined;
  /** The state of the record. */
  readonly record: KeyReport["state"];
  /** ms since the last run began, where its record is still there. */
  readonly lastBegan?: number | undefined;
  /** ms until the lease of the last run ends. */
  readonly remaining: number;
  readonly votes: KeyReport["votes"];
}

/** Decides whether a key is dead. `maxAttempts`: that of the program; undefined: not known. */
export function deadReport(report: KeyReport, maxAttempts: number | undefined): DeadReport {
  const { key, state: record, attempts, age, remaining, votes } = report;
  return {
    key,
    ...decide(report, maxAttempts),
    attempts,
    maxAttempts,
    record,
    lastBegan: record === "pending" ? age : undefined,
    remaining: record === "pending" ? remaining : 0,
    votes,
  };
}

function decide(
  { state, why, attempts }: KeyReport,
  maxAttempts: number | undefined,
): Pick<DeadReport, "state" | "why"> {
  // A complete record at a few endpoints may still decide.
  if (state === "undecided") return { state: "unknown", why };
  if (state === "complete") return { state: "alive", why: "a run of the key is complete" };
  const began = `${counted(attempts, "run")} began and neither completed nor failed`;
  if (attempts === 0) return { state: "alive", why: "no run is counted that did not end" };
  if (maxAttempts === undefined) {
    return {
      state: "unknown",
      why: `${began}: it is dead if your maxAttempts is ${attempts} or less; say it with --max-attempts`,
    };
  }
  const of = `maxAttempts is ${maxAttempts}`;
  if (attempts < maxAttempts) return { state: "alive", why: `${began}, and ${of}` };
  if (state === "pending") {
    return {
      state: "last-attempt",
      why: `${began}, and ${of}: the last of them is under way, or its process has died: then the key is dead`,
    };
  }
  return { state: "dead", why: `${began}, and ${of}` };
}

const headlines: Readonly<Record<DeadState, string>> = {
  dead: "is dead",
  alive: "is not dead",
  "last-attempt": "is in its last attempt",
  unknown: "may be dead",
};

/** The report as lines. `forgetCommand`: the command line that lets the key run again. */
export function deadLines(report: DeadReport, forgetCommand: string): string[] {
  const { key, state, why, attempts, record, lastBegan, remaining, votes } = report;
  const since =
    lastBegan === undefined
      ? "not known when it began: its record has expired"
      : `began ${duration(lastBegan)} ago; its lease ends in ${duration(remaining)} unless it is renewed`;
  const sections: [string, string[]][] = [
    ["why", wrapped(why)],
    ["last run", attempts > 0 && record !== "complete" && record !== "undecided" ? [since] : []],
    ["votes", table(votes.map(voteRow))],
    ["what to do", adviceFor(state, attempts, forgetCommand)],
  ];
  return [`${key} ${headlines[state]}`, ...labelled(sections)].map(printable);
}

function adviceFor(state: DeadState, attempts: number, forgetCommand: string): string[] {
  if (state === "alive" || attempts === 0) return [];
  if (state === "last-attempt") return ["Wait until its lease has ended, and look again."];
  return [
    "1. Find out why these runs did not end: memory, a time limit of the platform, a crash.",
    "2. Find out whether the effect has happened, for example at the payment provider.",
    "3. If it has not, and the cause is mended, let the key run again:",
    `   ${forgetCommand}`,
    "   If it has, leave the key: it stays dead until the retention after the last run ends.",
  ];
}

function voteRow({ endpoint, state, attempts, error }: KeyReport["votes"][number]): string[] {
  if (error) return [endpoint, state, error.message];
  return [endpoint, state, attempts === undefined ? "" : counted(attempts, "attempt")];
}
