import { type EndpointError, type Inspection, type InspectionVote, QuorumError } from "../index.ts";
import { type Cost, costText } from "./cost.ts";
import { duration, endpointsHave, labelled, printable, table, wrapped } from "./text.ts";

// What an inspection of a lock means, for people and as JSON. No I/O.

/** One endpoint's answer. */
export interface LockVote {
  readonly endpoint: string;
  readonly state: "held" | "free" | "error";
  readonly holder?: string | undefined;
  /** ms */
  readonly remaining?: number | undefined;
  readonly fence?: number | undefined;
  readonly error?: { readonly kind: string; readonly message: string } | undefined;
}

/** The state of a resource, and why it is that. */
export interface LockReport {
  readonly resource: string;
  readonly state: "held" | "free" | "undecided";
  readonly why: string;
  readonly holder?: string | undefined;
  /** ms until it is free unless its holder extends it; 0 where it is not held. */
  readonly remaining: number;
  readonly fence?: number | undefined;
  /** ms since the fence was drawn, by the clock of its client. */
  readonly fenceAge?: number | undefined;
  readonly quorum: number;
  readonly votes: readonly LockVote[];
}

/** Explains an inspection, or its failure. `now`: ms since 1970. */
export function lockReport(resource: string, found: Inspection | QuorumError, now: number): LockReport {
  const decided = "held" in found ? found : undefined;
  const votes = decided ? decided.votes.map(decidedVote) : (found as QuorumError).votes.map(undecidedVote);
  const quorum = Math.floor(votes.length / 2) + 1;
  const state = decided ? (decided.held ? "held" : "free") : "undecided";
  const fence = decided?.fence;
  return {
    resource,
    state,
    why: [reasonOf(state, votes, quorum), silenceOf(votes)].filter(Boolean).join("; "),
    holder: decided?.holder,
    remaining: decided?.remaining ?? 0,
    fence,
    // A counter that is ahead of the clock has counted, and is not a time.
    fenceAge: fence !== undefined && fence <= now ? now - fence : undefined,
    quorum,
    votes,
  };
}

function decidedVote(vote: InspectionVote): LockVote {
  const { endpoint, outcome: state, holder, remaining, fence, cause } = vote;
  return { endpoint, state, holder, remaining, fence, error: cause && errorOf(cause) };
}

function undecidedVote({ endpoint, outcome, cause }: QuorumError["votes"][number]): LockVote {
  const state = outcome === "held" ? "held" : outcome === "granted" ? "free" : "error";
  return { endpoint, state, error: cause && errorOf(cause) };
}

/** An endpoint's error as it is reported; its name stands elsewhere. */
export function errorOf({ kind, message, endpoint }: EndpointError): {
  readonly kind: string;
  readonly message: string;
} {
  const prefix = `${endpoint}: `;
  return { kind, message: message.startsWith(prefix) ? message.slice(prefix.length) : message };
}

function reasonOf(state: LockReport["state"], votes: readonly LockVote[], quorum: number): string {
  const holding = votes.filter((vote) => vote.state === "held");
  const holders = new Map<string, number>();
  for (const { holder } of holding) if (holder) holders.set(holder, (holders.get(holder) ?? 0) + 1);
  if (state === "held") {
    const share = endpointsHave(Math.max(...holders.values()), votes.length);
    return `${share} the same holder, a quorum is ${quorum}`;
  }
  if (state === "undecided") {
    const count = (wanted: LockVote["state"]) => votes.filter((vote) => vote.state === wanted).length;
    return `too few endpoints answered to know, a quorum is ${quorum}: ${count("held")} held, ${count("free")} free`;
  }
  if (holding.length === 0) return `no endpoint that answered has a holder, a quorum is ${quorum}`;
  const parts = [...holders].map(([holder, count]) => `${holder} has ${count}`);
  return `nobody has a quorum, which is ${quorum} of ${votes.length}: ${parts.join(", ")}. What they have expires by itself`;
}

/** Which endpoints did not answer usably, and why. */
export function silenceOf(
  votes: readonly { readonly endpoint: string; readonly error?: { readonly message: string } | undefined }[],
): string | undefined {
  const failed = votes.flatMap(({ endpoint, error }) => (error ? [`${endpoint} (${error.message})`] : []));
  return failed.length > 0
    ? `${failed.length} of ${votes.length} gave no usable answer: ${failed.join(", ")}`
    : undefined;
}

/** A failed quorum with what that means for the command; other errors as they are. */
export function withAdvice(error: unknown, advice: string): unknown {
  if (!(error instanceof QuorumError)) return error;
  const votes = error.votes.map(({ endpoint, cause }) => ({ endpoint, error: cause && errorOf(cause) }));
  return new Error([advice, silenceOf(votes)].filter(Boolean).join("; "), { cause: error });
}

/** The report as lines. */
export function lockLines(report: LockReport, cost: Cost): string[] {
  const { resource, state, why, holder, remaining, fence, fenceAge, votes } = report;
  const drawn = fenceAge === undefined ? "" : `, drawn ${duration(fenceAge)} ago`;
  const sections: [string, string[]][] = [
    ["why", wrapped(why)],
    ["holder", holder ? [`${holder} (SHA-256 of its lock.token, first 12 digits)`] : []],
    ["remaining", state === "held" ? [`${duration(remaining)}, unless the holder extends it`] : []],
    [state === "held" ? "fence" : "last fence", fence === undefined ? [] : [`${fence}${drawn}`]],
    ["votes", table(votes.map(voteRow))],
    ["cost", [costText(cost)]],
  ];
  return [`${resource} is ${state}`, ...labelled(sections)].map(printable);
}

function voteRow({ endpoint, state, holder, remaining, fence, error }: LockVote): string[] {
  if (error) return [endpoint, state, error.message];
  const details = [
    ...(state === "held" && remaining !== undefined ? [duration(remaining)] : []),
    ...(holder ? [holder] : []),
    ...(fence === undefined ? [] : [`fence ${fence}`]),
  ];
  return [endpoint, state, details.join("  ")];
}
