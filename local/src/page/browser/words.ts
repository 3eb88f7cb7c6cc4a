import { duration } from "../../../../src/cli/text.ts";
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
export const clock = (ms: number): string =>
  `${new Date(ms).toTimeString().slice(0, 8)}.${Math.floor((ms % 1_000) / 100)}`;

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** The state in one sentence: what runs, whether a quorum can answer, what is held, and what is wrong. */
export function summary({ endpoints, quorum, locks, records, engine }: PageState): {
  readonly text: string;
  readonly bad: boolean;
} {
  const up = endpoints.filter(({ status }) => status === "up").length;
  const faulty = endpoints.filter(({ status, faults }) => status === "up" && faults.length > 0).length;
  const held = locks.filter((lock) => lock.held).length;
  const wrong = records.filter(({ state }) => state === "corrupt" || state === "unfinished").length;
  const behind = engine === "redis" ? "Redis" : "the embedded engine";
  const parts = [
    `${up} of ${counted(endpoints.length, "endpoint")} up, on ${behind}`,
    up < quorum ? `too few for a quorum of ${quorum}: every acquire fails` : `a quorum is ${quorum}`,
    ...(faulty > 0 ? [`${faulty} with faults`] : []),
    held === 0 ? "nothing held" : `${held} held`,
    ...(wrong > 0 ? [`${counted(wrong, "key")} may be dead or corrupt`] : []),
  ];
  return { text: parts.join(" · "), bad: up < quorum || wrong > 0 };
}

/** What the state of a key of runs is called. */
export const recordWords: Readonly<Record<RecordRow["state"], string>> = {
  complete: "executed",
  pending: "running",
  corrupt: "corrupt",
  unfinished: "may be dead",
};

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
