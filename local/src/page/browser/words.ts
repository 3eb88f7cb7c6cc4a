import { duration } from "../../../../src/cli/text.ts";
import type { FaultRule } from "../../faults/faults.ts";
import type { LockRow, PageState, RecordRow, Share } from "../state.ts";

// What the page says. No I/O.

/** How long something goes on: `8.2 s`, `3 min 5 s`, `no expiry`. */
export function left(ms: number): string {
  return ms >= 1e14 ? "no expiry" : duration(Math.max(0, ms));
}

/** How long ago something was: `now`, `8 s ago`, `3 min ago`. */
export function ago(ms: number): string {
  if (ms < 1_000) return "now";
  const [count, unit] = ms < 60_000 ? [1_000, "s"] : ms < 3_600_000 ? [60_000, "min"] : [3_600_000, "h"];
  return `${Math.floor(ms / Number(count))} ${unit} ago`;
}

/** A long name without its middle: many differ at the end only. */
export function short(text: string): string {
  return text.length > 80 ? `${text.slice(0, 45)} … ${text.slice(-30)}` : text;
}

/** A time of the day, with tenths of seconds. */
export function clock(ms: number): string {
  const time = new Date(ms);
  const two = (value: number) => `${value}`.padStart(2, "0");
  const seconds = `${two(time.getSeconds())}.${Math.floor(time.getMilliseconds() / 100)}`;
  return `${two(time.getHours())}:${two(time.getMinutes())}:${seconds}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** The state in one sentence: what runs, whether a quorum can answer, and what is held. */
export function summary({ endpoints, quorum, locks, engine }: PageState): {
  readonly text: string;
  readonly bad: boolean;
} {
  const up = endpoints.filter(({ status }) => status === "up").length;
  const faulty = endpoints.filter(({ status, faults }) => status === "up" && faults.length > 0).length;
  const held = locks.filter((lock) => lock.held).length;
  const behind = engine === "redis" ? "Redis" : "the embedded engine";
  const parts = [
    `${up} of ${counted(endpoints.length, "endpoint")} up, on ${behind}`,
    up < quorum ? `too few for a quorum of ${quorum}: every acquire fails` : `a quorum is ${quorum}`,
    ...(faulty > 0 ? [`${faulty} with faults`] : []),
    held === 0 ? "nothing held" : `${held} held`,
  ];
  return { text: parts.join(" · "), bad: up < quorum };
}

/** What the state of a key of runs is called. */
export const recordWords: Readonly<Record<RecordRow["state"], string>> = {
  complete: "executed",
  pending: "running",
  corrupt: "corrupt",
  unfinished: "may be dead",
};

/** A rule in words: `delay ms 300`. */
export const ruleText = (rule: FaultRule): string =>
  Object.entries(rule)
    .map(([name, value]) => (name === "fault" ? `${value}` : `${name} ${value}`))
    .join(" ");

/** What is wrong now: endpoints that fail, faults that are on, keys that do not run again. */
export function wrongs({ endpoints, records }: Pick<PageState, "endpoints" | "records">): {
  readonly name: string;
  readonly text: string;
}[] {
  const failing = endpoints.flatMap(({ name, status, faults }) => {
    if (status === "stopped") return [{ name, text: "is stopped" }];
    if (status === "silent") return [{ name, text: "is up, but its Redis does not answer" }];
    const rules = faults.map(ruleText).join(", ");
    return rules === "" ? [] : [{ name, text: `has faults switched on: ${rules}` }];
  });
  const keys = records.flatMap(({ key, state, attempts = 0 }) => {
    if (state === "corrupt") return [{ name: key, text: "has a value that is not a record: its runs fail" }];
    if (state !== "unfinished") return [];
    const began = `${counted(attempts, "run")} began and neither completed nor failed`;
    return [{ name: key, text: `may be dead: ${began}, and none is under way` }];
  });
  return [...failing, ...keys];
}

/** Whether a text has all words of a search. */
export function matching(text: string, search: string): boolean {
  const lower = text.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}

const meanings: Readonly<Record<Share, string>> = {
  same: "has it",
  other: "has another value",
  free: "does not have it",
  unknown: "is not up",
};

/** How an endpoint stands to a row, in words. */
export const shareText = (share: Share, endpoint: string): string => `${endpoint} ${meanings[share]}`;

/** How many endpoints have it: `3 of 3`, and what that means where it is not a quorum. */
export function sharesText({ shares, held }: Pick<LockRow, "shares" | "held">): string {
  const same = shares.filter((share) => share === "same").length;
  return `${same} of ${shares.length}${held ? "" : ", no quorum"}`;
}
