import { Idempotency, inspectKey, type KeyInspection } from "../idempotency/index.ts";
import { type EndpointError, QuorumError, type Redlock } from "../index.ts";
import { type Inspection, inspect } from "../inspect/index.ts";
import { quorumOf } from "../quorum/tally.ts";
import { type Call, clientOf, type Failure, failureOf } from "./access.ts";
import { exitCode, type Outcome } from "./environment.ts";
import { type Target, targetOf } from "./target.ts";
import { counted, duration, type Text } from "./text.ts";

/** What is known of a name: by all endpoints together, or by one of them. */
type Known = Partial<Omit<Inspection, "held" | "votes"> & Omit<KeyInspection, "state" | "votes">>;

/** One endpoint's answer. The library says `outcome` of locks, and `state` of records. */
type Vote = Known & Record<"endpoint", string> & Partial<Record<"state" | "outcome", string>>;

/** The state of a lock or a key, and why it is that. */
export interface Finding extends Known {
  readonly resource?: string;
  readonly key?: string;
  readonly state: "held" | "free" | KeyInspection["state"];
  readonly why: string;
  readonly quorum: number;
  readonly votes: readonly (Vote & { readonly error?: Failure })[];
}

/** What to look at if a key has no record. */
export const elsewhere =
  "If you expected one, compare --scope, --http, --handler, --webhook and --flight with your code";

/** What each state means, and what happens when the remaining time has ended. */
const states: Readonly<Record<Finding["state"], readonly [why: string, ending?: string]>> = {
  held: ["a quorum has the same holder", "unless the holder extends it"],
  free: ["no holder of a lock has a quorum; for holders of other synchronizers: redlock-edge list"],
  pending: [
    "a run began and did not end: it is under way, or its process has died",
    "then its lease ends, unless it is renewed",
  ],
  complete: ["a run is complete: duplicates get its result", "then the record expires"],
  corrupt: ["a value is not a record: calls get RecordCorruptError until it is forgotten"],
  none: [`no endpoint that answered has a record: the next call runs its function. ${elsewhere}`],
  undecided: ["no record has a quorum: the next call decides"],
};

const titles: Readonly<Record<string, string>> = { none: "has no record", free: "has no lock" };

type Found = Omit<Finding, "why" | "quorum" | "votes"> & {
  readonly votes: readonly (Vote & { readonly cause?: EndpointError })[];
};

function findingOf(found: Found, why: string = states[found.state][0]): Finding {
  const votes = found.votes.map(({ cause, outcome, state = outcome, ...vote }) => {
    return { ...vote, ...(state && { state }), ...(cause && { error: failureOf(cause) }) };
  });
  return { ...found, why, quorum: quorumOf(votes.length), votes };
}

/** Inspects a resource or a key. Too few answers are a finding as well. */
export async function look(redlock: Redlock, target: Target): Promise<Finding> {
  const subject = "key" in target ? { key: target.key } : target;
  try {
    if ("key" in target) {
      const found = await inspectKey(new Idempotency(redlock), target.key, target.options);
      return findingOf({ ...subject, ...found });
    }
    const { held, ...found } = await inspect(redlock, target.resource);
    return findingOf({ ...subject, ...found, state: held ? "held" : "free" });
  } catch (error) {
    if (!(error instanceof QuorumError)) throw error;
    const why = "too few endpoints answered to know; to see what to fix: redlock-edge doctor";
    return findingOf({ ...subject, state: "undecided", votes: error.votes }, why);
  }
}

/** A note in quotes, because it may be any text. */
export const quoted = (note: string): string => JSON.stringify(note);

/** The rows of what is known of a finding. */
function factRows(finding: Finding): string[][] {
  const { state, holder, note, age, remaining, fence, attempts, unstored } = finding;
  // A counter that is ahead of the clock has counted, and is not a time.
  const fenceAge = Date.now() - (fence ?? 0);
  const drawn = fenceAge < 0 ? "" : `, drawn ${duration(fenceAge)} ago`;
  const facts = {
    holder: holder && `${holder} (SHA-256 of its lock.token, first 12 digits)`,
    note: note && quoted(note),
    age: age !== undefined && `${state === "pending" ? "began" : "completed"} ${duration(age)} ago`,
    remaining: remaining && `${duration(remaining)}, ${states[state][1]}`,
    fence: fence && `${state === "held" ? "" : "the last was "}${fence}${drawn}`,
    // Redis does not know the program's `maxAttempts`.
    attempts:
      attempts &&
      `${counted(attempts, "run")} began and did not end: at your maxAttempts, the key is dead (DeadKeyError) until you forget it`,
    unstored: unstored && `${unstored}: duplicates get ResultUnavailableError, and flights compute`,
  };
  return Object.entries(facts).flatMap(([label, fact]) => (fact ? [[`  ${label}`, fact]] : []));
}

/** A finding for people. */
export function findingText(finding: Finding): Text {
  const { resource, key, state, why, votes, quorum } = finding;
  const answered = votes.filter(({ error }) => !error).length;
  return [
    `${resource ?? key} ${titles[state] ?? `is ${state}`}`,
    ["  why", why],
    ["  quorum", `${answered} of ${counted(votes.length, "endpoint")} answered (${quorum} needed)`],
    ...factRows(finding),
    ...votes.map(({ endpoint, state = "", error, remaining, holder }, index) => {
      // Not what all have.
      const cells = [remaining && `${duration(remaining)} left`, holder !== finding.holder && holder];
      const known = error?.message ?? cells.filter(Boolean).join(", ");
      return [index === 0 ? "  votes" : "", endpoint, state, known];
    }),
  ];
}

/** `redlock-edge inspect`: one look at a lock or a key. */
export async function inspectOnce(call: Call): Promise<Outcome> {
  const finding = await look(clientOf(call), await targetOf(call));
  const { state } = finding;
  const known = state === "free" || state === "none" ? exitCode.nothing : exitCode.done;
  const code = state === "undecided" ? exitCode.failed : known;
  return { code, fields: finding, text: findingText(finding) };
}
