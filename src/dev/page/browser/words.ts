import type { LockRow, PageState, Share } from "../state.ts";

// What the page says. No I/O.

/** A duration: `812 ms`, `8.2 s`, `3 min 5 s`, `2 h 4 min`. */
export function duration(ms: number): string {
  if (ms >= 1e14) return "no expiry";
  const left = Math.max(0, Math.round(ms));
  if (left < 1_000) return `${left} ms`;
  if (left < 60_000) return `${(Math.floor(left / 100) / 10).toFixed(1)} s`;
  const minutes = Math.floor(left / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor(left / 1_000) % 60} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A time of the day, with tenths of seconds. */
export function clock(ms: number): string {
  const time = new Date(ms);
  const two = (value: number) => `${value}`.padStart(2, "0");
  const seconds = `${two(time.getSeconds())}.${Math.floor(time.getMilliseconds() / 100)}`;
  return `${two(time.getHours())}:${two(time.getMinutes())}:${seconds}`;
}

/** A count of one second: `0`, `2.5`, `140`. */
export function rate(value: number): string {
  return value === 0 ? "0" : value < 10 ? value.toFixed(1) : `${Math.round(value)}`;
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** The state in one sentence: what runs, whether a quorum can answer, and what is held. */
export function summary({ endpoints, quorum, locks, moreLocks, engine }: PageState): {
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
    moreLocks > 0 ? `more than ${held} held` : held === 0 ? "nothing held" : `${held} held`,
  ];
  return { text: parts.join(" · "), bad: up < quorum };
}

const meanings: Readonly<Record<Share, string>> = {
  same: "has it",
  other: "has another value",
  free: "does not have it",
  unknown: "is not up",
};

/** How an endpoint stands to a row, in words. */
export const shareText = (share: Share, endpoint: string): string => `${endpoint} ${meanings[share]}`;

/** How many endpoints have it: `3 of 3`, and what that means where it is no quorum. */
export function sharesText({ shares, held }: Pick<LockRow, "shares" | "held">): string {
  const same = shares.filter((share) => share === "same").length;
  return `${same} of ${shares.length}${held ? "" : ", no quorum"}`;
}
