import type { KeyInspection, KeyVote } from "../idempotency/index.ts";
import { QuorumError, type Vote } from "../index.ts";
import type { Inspection, InspectionVote } from "../inspect/index.ts";
import { quorumOf } from "../quorum/tally.ts";
import type { MailboxState } from "../sync/index.ts";
import { failureOf } from "./access.ts";
import { counted, duration, type Text } from "./text.ts";

// The state of a lock or a key, for people and as JSON. No I/O.

/** What is known of a name: by all endpoints together, or by one of them. */
type Known = Partial<Omit<Inspection, "held" | "votes"> & Omit<KeyInspection, "state" | "votes">>;

/** One endpoint's answer. */
interface FoundVote extends Known {
  readonly endpoint: string;
  /** `answered`: nothing else is known. */
  readonly state: string;
  readonly error?: { readonly kind: string; readonly message: string };
}

/** The state of a lock or a key, and why it is that. */
export interface Finding extends Known {
  readonly resource?: string;
  readonly key?: string;
  readonly state: "held" | "free" | "in use" | KeyInspection["state"];
  readonly why: string;
  /** The synchronizers that use the name. */
  readonly kinds?: readonly string[];
  /** How many messages wait in the mailbox, the one that is being handled included. */
  readonly waiting?: number;
  /** ms since the fence was drawn, by the clock of its client. */
  readonly fenceAge?: number | undefined;
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
const unknown = "too few endpoints answered to know; to see what to fix: redlock-edge doctor";

/** A vote of any kind. The library says `outcome` of locks and `state` of records. */
type AnyVote = Partial<Pick<InspectionVote | KeyVote | Vote, "cause">> &
  Known & { readonly endpoint: string; readonly outcome?: string; readonly state?: string };

function answersOf(given: readonly AnyVote[]): Pick<Finding, "votes" | "quorum"> {
  const votes = given.map(({ cause, outcome, ...vote }): FoundVote => {
    const { endpoint, state = outcome === "granted" ? "answered" : outcome! } = vote;
    if (!cause) return { ...vote, state };
    const { kind, message } = failureOf(cause);
    return { endpoint, state: "error", error: { kind, message } };
  });
  return { votes, quorum: quorumOf(votes.length) };
}

/** @param now ms since 1970 */
export function lockFinding(resource: string, found: Inspection | QuorumError, now: number): Finding {
  const answers = answersOf(found.votes);
  if (found instanceof QuorumError) return { resource, state: "undecided", why: unknown, ...answers };
  const { held, fence, ...rest } = found;
  const state = held ? "held" : "free";
  const isPart = !held && answers.votes.some((vote) => vote.state === "held");
  const why = isPart ? "no holder has a quorum, and each endpoint's part expires by itself" : reasons[state];
  // A counter that is ahead of the clock has counted, and is not a time.
  const fenceAge = fence !== undefined && fence <= now ? now - fence : undefined;
  return { resource, state, why, ...rest, fence, fenceAge, ...answers };
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

/** A name that a mailbox uses, perhaps beside other synchronizers. */
export function withMailbox(finding: Finding, { isHeld, holder, waiting }: MailboxState): Finding {
  const messages = waiting === 1 ? "1 message waits" : `${waiting} messages wait`;
  const why = isHeld
    ? `a call has the mailbox's turn; ${messages}, the one that it handles included`
    : `${messages}, and no call has the mailbox's turn: the next post or drain handles all`;
  return { ...finding, why, holder, waiting };
}

/** @param elsewhere which options may be wrong if there is no record */
export function keyFinding(key: string, found: KeyInspection | QuorumError, elsewhere: string): Finding {
  const answers = answersOf(found.votes);
  if (found instanceof QuorumError) return { key, state: "undecided", why: unknown, ...answers };
  const { state, unstored, attempts } = found;
  const more = attempts > 0 ? ", unless the key is dead" : `. ${elsewhere}`;
  const why = unstored
    ? `a run is complete, but its result is not stored (${unstored}): duplicates get ResultUnavailableError, and flights compute`
    : reasons[state] + (state === "none" ? more : "");
  return { key, ...found, why, ...answers };
}

/** `invoice:42 is held`. */
function headlineOf({ resource, key, state, kinds = [] }: Finding): string {
  const by = kinds.length > 0 ? ` (${kinds.join(", ")})` : "";
  return `${resource ?? key} ${state === "none" ? "has no record" : `is ${state}${by}`}`;
}

/** A note in quotes, because it may be any text. */
export const quoted = (note: string): string => JSON.stringify(note);

/** What happens when the remaining time has ended. */
const endings: Readonly<Record<string, string>> = {
  held: "unless the holder extends it",
  pending: "then its lease ends, unless it is renewed",
  complete: "then the record expires",
};

/** The rows of what is known of a finding. */
function factRows(finding: Finding): string[][] {
  const { state, holder, note, age, remaining, fence, fenceAge, attempts, fingerprint } = finding;
  const isHeld = state === "held";
  const drawn = fenceAge === undefined ? "" : `, drawn ${duration(fenceAge)} ago`;
  const facts = [
    ["holder", holder && holder + (isHeld ? " (SHA-256 of its lock.token, first 12 digits)" : "")],
    ["note", note && quoted(note)],
    ["age", age !== undefined && `${state === "pending" ? "began" : "completed"} ${duration(age)} ago`],
    ["remaining", remaining && `${duration(remaining)}, ${endings[state]}`],
    ["fence", fence && `${isHeld ? "" : "the last was "}${fence}${drawn}`],
    // Redis does not know the program's `maxAttempts`.
    [
      "attempts",
      attempts &&
        `${counted(attempts, "run")} began and did not end: at your maxAttempts, the key is dead (DeadKeyError) until you forget it`,
    ],
    ["fingerprint", fingerprint],
  ] as const;
  return facts.flatMap(([label, fact]) => (fact ? [[`  ${label}`, fact]] : []));
}

/** A finding for people. */
export function findingText(finding: Finding): Text {
  const { why, votes, quorum } = finding;
  const answered = votes.filter(({ error }) => !error).length;
  return [
    headlineOf(finding),
    ["  why", why],
    ["  quorum", `${answered} of ${counted(votes.length, "endpoint")} answered (${quorum} needed)`],
    ...factRows(finding),
    ...votes.map((vote, index) => [index === 0 ? "  votes" : "", ...voteCells(vote, finding)]),
  ];
}

/** What an endpoint has, without what all have. */
function voteCells({ endpoint, state, error, ...vote }: FoundVote, all: Finding): string[] {
  const { age, remaining, holder, fence, attempts } = vote;
  const cells = [
    age !== undefined && age !== all.age && `${duration(age)} old`,
    remaining && `${duration(remaining)} left`,
    holder !== all.holder && holder,
    fence && fence !== all.fence && `fence ${fence}`,
    attempts && attempts !== all.attempts && counted(attempts, "attempt"),
  ];
  const shown = all.state === "in use" && state === "free" ? "no lock" : state;
  return [endpoint, shown, error?.message ?? cells.filter(Boolean).join(", ")];
}
