import type { KeyInspection, KeyOptions, KeyVote } from "../idempotency/index.ts";
import type { QuorumError } from "../index.ts";
import { type Cost, costText } from "./cost.ts";
import { errorOf, silenceOf } from "./explain-lock.ts";
import { counted, duration, endpointsHave, labelled, printable, table, wrapped } from "./text.ts";

// What an inspection of an idempotency key means, for people and as JSON. No I/O.

/** One endpoint's answer; `undecided` where only the number of answers is known. */
export interface KeyReportVote extends Omit<KeyVote, "cause" | "state"> {
  readonly state: KeyVote["state"] | "answered";
  readonly error?: { readonly kind: string; readonly message: string } | undefined;
}

/** The state of a key, and why it is that. */
export interface KeyReport {
  readonly key: string;
  readonly state: KeyInspection["state"];
  readonly why: string;
  /** ms since the run began or completed. */
  readonly age?: number | undefined;
  /** ms until the lease or the retention ends; 0 where neither is known. */
  readonly remaining: number;
  readonly attempts: number;
  readonly fingerprint?: string | undefined;
  readonly unstored?: string | undefined;
  readonly quorum: number;
  readonly votes: readonly KeyReportVote[];
}

/** Explains an inspection, or its failure. */
export function keyReport(
  key: string,
  found: KeyInspection | QuorumError,
  kind: KeyOptions["kind"] = "run",
): KeyReport {
  const decided = "state" in found ? found : undefined;
  const votes = decided
    ? decided.votes.map(({ cause, ...vote }) => ({ ...vote, error: cause && errorOf(cause) }))
    : (found as QuorumError).votes.map(({ endpoint, cause }) =>
        cause
          ? ({ endpoint, state: "error", error: errorOf(cause) } as const)
          : ({ endpoint, state: "answered" } as const),
      );
  const quorum = Math.floor(votes.length / 2) + 1;
  const state = decided?.state ?? "undecided";
  return {
    key,
    state,
    why: [reasonOf(state, votes, { quorum, unstored: decided?.unstored, kind }), silenceOf(votes)]
      .filter(Boolean)
      .join("; "),
    age: decided?.age,
    remaining: decided?.remaining ?? 0,
    attempts: decided?.attempts ?? 0,
    fingerprint: decided?.fingerprint,
    unstored: decided?.unstored,
    quorum,
    votes,
  };
}

/** What a record means to the next call of `run()`. */
const runWords = {
  unstored: "duplicates get ResultUnavailableError",
  stored: "duplicates get its result",
  none: "the next call runs the handler",
};

/** The same for `singleFlight()`. */
const flightWords = {
  unstored: "callers of other processes compute",
  stored: "callers share its value until its ttl has ended",
  none: "the next call computes",
};

function reasonOf(
  state: KeyReport["state"],
  votes: readonly KeyReportVote[],
  {
    quorum,
    unstored,
    kind,
  }: { readonly quorum: number; readonly unstored: string | undefined; readonly kind: KeyOptions["kind"] },
): string {
  const words = kind === "flight" ? flightWords : runWords;
  const having = (wanted: KeyReportVote["state"]) => votes.filter((vote) => vote.state === wanted).length;
  const share = (wanted: KeyReportVote["state"]) => endpointsHave(having(wanted), votes.length);
  const needed = `a quorum is ${quorum}`;
  switch (state) {
    case "pending":
      return `${share("pending")} the record of a run that began and did not end, ${needed}: it is under way, or its process has died`;
    case "complete":
      return `${share("complete")} the record of a complete run, ${needed}: ${
        unstored ? `its result is not stored (${unstored}), so ${words.unstored}` : words.stored
      }`;
    case "corrupt":
      return `${share("corrupt")} a value that is not a record: calls get RecordCorruptError until it is forgotten`;
    case "none":
      return `no endpoint that answered has a record: ${words.none}${
        votes.some(({ attempts }) => attempts) ? ", unless the key is dead" : ""
      }`;
    case "undecided":
      return having("answered") + having("error") === votes.length
        ? `too few endpoints answered, ${needed}`
        : `of ${counted(votes.length, "endpoint")}, ${having("pending")} have a pending and ${having("complete")} a complete record, ${needed}: the next call decides`;
  }
}

/** The report as lines. */
export function keyLines(report: KeyReport, cost: Cost): string[] {
  const { key, state, why, age, remaining, attempts, fingerprint, votes } = report;
  const verb = state === "pending" ? "began" : "completed";
  const ends = state === "pending" ? "its lease ends, unless it is renewed" : "the record expires";
  const sections: [string, string[]][] = [
    ["why", wrapped(why)],
    ["age", age === undefined ? [] : [`${verb} ${duration(age)} ago`]],
    ["remaining", remaining > 0 ? [`${duration(remaining)}, then ${ends}`] : []],
    ["attempts", attempts > 0 ? [attemptsText(state, attempts)] : []],
    ["fingerprint", fingerprint === undefined ? [] : [fingerprint]],
    ["votes", table(votes.map(voteRow))],
    ["cost", [costText(cost)]],
  ];
  const headline = state === "none" ? `${key} has no record` : `${key} is ${state}`;
  return [headline, ...labelled(sections)].map(printable);
}

/** A run that completes leaves the count as it is; one that fails clears it. */
function attemptsText(state: KeyReport["state"], attempts: number): string {
  const began = `${counted(attempts, "run")} began`;
  if (state === "complete") return `${began}, the last of them completed`;
  return `${began} and neither completed nor failed`;
}

function voteRow({ endpoint, state, age, remaining, attempts, error }: KeyReportVote): string[] {
  if (error) return [endpoint, state, error.message];
  const details = [
    ...(age === undefined ? [] : [`${duration(age)} old`]),
    ...(remaining ? [`${duration(remaining)} left`] : []),
    ...(attempts ? [counted(attempts, "attempt")] : []),
  ];
  return [endpoint, state, details.join(", ")];
}
