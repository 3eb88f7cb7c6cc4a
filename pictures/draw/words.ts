import type { Outcome } from "../timeline.ts";
import type { Bar } from "./bars.ts";
import type { Call, Exchange, Pause, Verdict } from "./shapes.ts";

// What the picture says in words: results, and the text about what the pointer is on.

const words: Record<Outcome, string> = {
  granted: "granted",
  held: "refused",
  gone: "gone",
  error: "unavailable",
};

/** The result of a call in a word. */
export const resultOf = ({ name, outcome }: Call): string => name ?? words[outcome];

/** `2/3`: how many voted for it, of how many. */
export function tallyOf({ votes }: Call): string {
  if (!votes) return "";
  const all = Object.values(votes);
  return `${all.filter((vote) => vote === "granted").length}/${all.length}`;
}

/** A number with at most so many decimals. */
const rounded = (value: number, decimals: number): string => `${Number(value.toFixed(decimals))}`;

/** `812.5 ms`, or `12.35 s`. */
const at = (time: number): string =>
  time < 10_000 ? `${rounded(time, 1)} ms` : `${rounded(time / 1_000, 2)} s`;

type Line = string | undefined | false;

/** Without what is not known. */
const lines = (...all: readonly Line[]): string => all.filter(Boolean).join("\n");

const ends: Record<Bar["end"], string> = {
  removed: "removed",
  expired: "expired",
  open: "still so at the end",
};

export function ofBar(bar: Bar): string {
  const { key, lane, holder, fence, from, to, end, until, refreshed, unsafe } = bar;
  const isStored = bar.kind === "stored";
  return lines(
    isStored ? `${key} on ${lane}` : `${holder} may rely on ${key}`,
    isStored && `holder: ${holder}`,
    fence !== undefined && `fence: ${fence}`,
    `${at(from)} to ${at(to)}: ${isStored || end !== "removed" ? ends[end] : "ended"}`,
    end !== "expired" && `expiry: ${at(until)}`,
    unsafe !== undefined && `taken off for drift from ${at(unsafe)}`,
    refreshed.length > 0 && `extended or restored at ${refreshed.map(at).join(", ")}`,
  );
}

export function ofCall(call: Call): string {
  const { client, operation, key, from, time, fence, validity, votes, detail } = call;
  const given = Object.entries(votes ?? {}).map(([name, vote]) => `${name}: ${words[vote]}`);
  return lines(
    `${client}: ${operation} ${resultOf(call)}`,
    `resource: ${key}`,
    `${at(from)} to ${at(time)}`,
    fence !== undefined && `fence: ${fence}`,
    validity !== undefined && `validity: ${rounded(validity, 1)} ms`,
    given.length > 0 && `votes: ${given.join(", ")}`,
    detail,
  );
}

export function ofExchange(exchange: Exchange): string {
  const { operation, client, endpoint, key, sent, lost, executed, answered } = exchange;
  return lines(
    `${operation}: ${client} → ${endpoint}`,
    key !== undefined && `resource: ${key}`,
    `sent at ${at(sent)}`,
    executed && `executed at ${at(executed.time)}: ${words[executed.outcome]}`,
    lost && `request lost at ${at(lost.time)}`,
    answered && `reply at ${at(answered.time)}: ${words[answered.outcome]}`,
    executed?.detail,
  );
}

export const ofPause = ({ name, client, from, to }: Pause): string =>
  lines(`${name}: ${client}`, `${at(from)} to ${at(to)}`);

export const ofVerdict = ({ phase, name, time, endpoint, detail }: Verdict): string =>
  lines(`${phase}: ${name}`, `at ${at(time)}, ${endpoint}`, detail);
