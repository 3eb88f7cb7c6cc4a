import type { KeyInspection, KeyVote } from "../idempotency/index.ts";
import { QuorumError, type Vote } from "../index.ts";
import type { Inspection, InspectionVote } from "../inspect/index.ts";
import { quorumOf } from "../quorum/tally.ts";
import type { MailboxState } from "../sync/index.ts";
import { failureOf } from "./access.ts";
import { counted, duration, layout } from "./text.ts";

// The state of a lock or a key, for people and as JSON. No I/O.

/** One endpoint's answer. */
export interface FoundVote extends Partial<Pick<InspectionVote & KeyVote, "holder" | "fence" | "age">> {
  readonly endpoint: string;
  /** `answered`: nothing else is known. */
  readonly state: InspectionVote["outcome"] | KeyVote["state"] | "answered";
  readonly remaining?: number | undefined;
  readonly attempts?: number | undefined;
  readonly error?: { readonly kind: string; readonly message: string };
}

/** The state of a lock or a key, and why it is that. A field is undefined if it is not known. */
export interface Finding extends Partial<Omit<KeyInspection, "state" | "votes" | "remaining" | "attempts">> {
  readonly resource?: string;
  readonly key?: string;
  readonly state: "held" | "free" | "in use" | KeyInspection["state"];
  readonly why: string;
  /** The synchronizers that use the name. */
  readonly kinds?: readonly string[];
  /** How many messages wait in the mailbox, the one that is being handled included. */
  readonly waiting?: number;
  readonly holder?: string | undefined;
  readonly note?: string | undefined;
  /** ms until the ttl, the lease or the retention ends. */
  readonly remaining?: number | undefined;
  readonly fence?: number | undefined;
  /** ms since the fence was drawn, by the clock of its client. */
  readonly fenceAge?: number | undefined;
  /** How many runs began and did not end, if they are counted. */
  readonly attempts?: number | undefined;
  /** The options under which the record was found, if they were not given. */
  readonly found?: string | undefined;
  readonly quorum: number;
  readonly votes: readonly FoundVote[];
}

/** A sentence about each state, and about its consequence. */
const reasons: Readonly<Record<Finding["state"], string>> = {
  held: "a quorum has the same holder",
  free: "no endpoint that answered has a holder",
  "in use": "no lock has this name, but a synchronizer has it; to see its holders: redlock-edge list",
  pending: "a run began and did not end: it is under way, or its process has died",
  complete: "a run is complete: duplicates get its result",
  corrupt: "a value is not a record: calls get RecordCorruptError until it is forgotten",
  none: "no endpoint that answered has a record of this name: the next call with it runs its function",
  undecided: "no record has a quorum: the next call decides",
};

/** @param granted what an answer says that is only known to have been given */
function answersOf(
  found: { readonly votes: readonly (InspectionVote | KeyVote | Vote)[] },
  granted: "free" | "answered",
): Pick<Finding, "votes" | "quorum"> {
  const votes = found.votes.map((vote): FoundVote => {
    const { endpoint, cause } = vote;
    if (cause) {
      const { kind, message } = failureOf(cause);
      return { endpoint, state: "error", error: { kind, message } };
    }
    if ("state" in vote) {
      return { ...vote, remaining: vote.remaining || undefined, attempts: vote.attempts || undefined };
    }
    const { outcome, ...rest } = vote;
    const isKnown = outcome === "held" || outcome === "free";
    const remaining = ("remaining" in rest && rest.remaining) || undefined;
    return { ...rest, remaining, state: isKnown ? outcome : granted };
  });
  return { votes, quorum: quorumOf(votes.length) };
}

const undecided = {
  state: "undecided",
  why: "too few endpoints answered to know; to see what to fix: redlock-edge doctor",
} as const;

/** @param now ms since 1970 */
export function lockFinding(resource: string, found: Inspection | QuorumError, now: number): Finding {
  const answers = answersOf(found, "free");
  if (found instanceof QuorumError) return { resource, ...undecided, ...answers };
  const { held, holder, note, remaining, fence } = found;
  const isPart = !held && answers.votes.some((vote) => vote.state === "held");
  const state = held ? "held" : "free";
  const why = isPart ? "no holder has a quorum, and each endpoint's part expires by itself" : reasons[state];
  // A counter that is ahead of the clock has counted, and is not a time.
  const fenceAge = fence !== undefined && fence <= now ? now - fence : undefined;
  return {
    resource,
    state,
    why,
    holder,
    note,
    remaining: remaining || undefined,
    fence,
    fenceAge,
    ...answers,
  };
}

/**
 * A lock that nobody holds, and the synchronizers of its name.
 *
 * @param found by endpoint: the kinds that have keys there. Undefined: it did not answer
 */
export function withSynchronizers(
  finding: Finding,
  found: readonly (readonly string[] | undefined)[],
): Finding {
  const used = found.filter((kinds) => kinds?.length).length;
  const silent = found.filter((kinds) => !kinds).length;
  if (used === 0 || used + silent < finding.quorum) return finding;
  const kinds = [...new Set(found.flatMap((each) => each ?? []))];
  return { ...finding, state: "in use", why: reasons["in use"], kinds };
}

const messagesText = (waiting: number) => (waiting === 1 ? "1 message waits" : `${waiting} messages wait`);

/** So many messages of a mailbox wait, and nobody has the turn. */
export const waitingText = (waiting: number): string =>
  `${messagesText(waiting)}, and no call has the mailbox's turn: the next post or drain handles all`;

/** A name that a mailbox uses, perhaps beside other synchronizers. */
export function withMailbox(finding: Finding, { isHeld, holder, waiting }: MailboxState): Finding {
  const why = isHeld
    ? `a call has the mailbox's turn; ${messagesText(waiting)}, the one that it handles included`
    : waitingText(waiting);
  return { ...finding, why, holder, waiting };
}

/** @param elsewhere under which other name its record may be */
export function keyFinding(key: string, found: KeyInspection | QuorumError, elsewhere: string): Finding {
  const answers = answersOf(found, "answered");
  if (found instanceof QuorumError) return { key, ...undecided, ...answers };
  const { state, unstored, attempts, remaining } = found;
  const more = attempts > 0 ? ", unless the key is dead" : `. ${elsewhere}`;
  const why = unstored
    ? `a run is complete, but its result is not stored (${unstored}): duplicates get ResultUnavailableError, and flights compute`
    : reasons[state] + (state === "none" ? more : "");
  const known = { remaining: remaining || undefined, attempts: attempts || undefined };
  return { key, ...found, ...known, why, ...answers };
}

/** `invoice:42 is held`. */
export function headlineOf({ resource, key, state, kinds = [] }: Finding): string {
  const by = kinds.length > 0 ? ` (${kinds.join(", ")})` : "";
  return `${resource ?? key} ${state === "none" ? "has no record" : `is ${state}${by}`}`;
}

/** How many endpoints say so: `3 of 3 endpoints (2 needed)`. */
function agreement({ state, holder, votes, quorum }: Finding): string {
  const agreed = votes.filter((vote) =>
    state === "undecided" || state === "in use"
      ? vote.state !== "error"
      : vote.state === state && vote.holder === holder,
  ).length;
  const verb = state === "undecided" || state === "in use" ? " answered" : "";
  return `${agreed} of ${counted(votes.length, "endpoint")}${verb} (${quorum} needed)`;
}

/** A note in quotes, because it may be any text. */
export const quoted = (note: string): string => JSON.stringify(note);

/** What happens when the remaining time has ended. */
const endings: Readonly<Record<string, string>> = {
  held: "unless the holder extends it",
  pending: "then its lease ends, unless it is renewed",
  complete: "then the record expires",
};

/** Redis knows how many runs began, but not the program's `maxAttempts`. A run that fails clears the count. */
function attemptsText({ state, attempts }: Finding): string | undefined {
  if (!attempts) return undefined;
  const began = `${counted(attempts, "run")} began`;
  if (state === "complete") return `${began}, the last of them completed`;
  const last = state === "pending" ? "if this one does not end either, " : "";
  return `${began} and neither completed nor failed: ${last}the key is given up (DeadKeyError) if maxAttempts is ${attempts} or less, until you forget it`;
}

/** A finding as lines for people. */
export function findingLines(finding: Finding, width: number): string[] {
  const { why, found, votes, holder, note, state, age, remaining, fence, fenceAge, fingerprint } = finding;
  const drawn = fenceAge === undefined ? "" : `, drawn ${duration(fenceAge)} ago`;
  const details = {
    why,
    found,
    quorum: agreement(finding),
    holder: holder && (state === "held" ? `${holder} (SHA-256 of its lock.token, first 12 digits)` : holder),
    note: note && quoted(note),
    age: age !== undefined && `${state === "pending" ? "began" : "completed"} ${duration(age)} ago`,
    remaining: remaining && `${duration(remaining)}, ${endings[state]}`,
    fence: fence !== undefined && `${state === "held" ? "" : "the last was "}${fence}${drawn}`,
    attempts: attemptsText(finding),
    fingerprint,
  };
  const rows = [
    ...Object.entries(details).flatMap(([label, text]) => (text ? [[`  ${label}`, text]] : [])),
    ...votes.map((vote, index) => [index === 0 ? "  votes" : "", ...voteCells(vote, finding)]),
  ];
  return [...layout([[headlineOf(finding)]], width), ...layout(rows, width)];
}

/** A state, where "free" would be said of a name that is in use. */
export function stateText(state: FoundVote["state"], all: Finding): string {
  return all.state === "in use" && state === "free" ? "no lock" : state;
}

/** What an endpoint has, without what all have. */
function voteCells({ endpoint, state, remaining, error, ...vote }: FoundVote, all: Finding): string[] {
  const { age, holder, fence, attempts } = vote;
  const cells = [
    age !== undefined && age !== all.age && `${duration(age)} old`,
    remaining && `${duration(remaining)} left`,
    holder !== all.holder && holder,
    fence && fence !== all.fence && `fence ${fence}`,
    attempts && attempts !== all.attempts && counted(attempts, "attempt"),
  ];
  return [endpoint, stateText(state, all), error?.message ?? cells.filter(Boolean).join(", ")];
}
