import type { AccessRecord, GrantRecord } from "../linearizability/history.ts";
import type { ClientRecord } from "./records.ts";

/** One attempt to hold a resource, and its outcome. Times are machine time. */
export interface Hold {
  readonly id: string;
  readonly resource: string;
  readonly ttl: number;
  /** When the acquire was called, and when it returned a lock. */
  readonly invoked: number;
  granted?: number;
  fence?: number;
  /** Until when, at least, the holder could rely on it by its own `remaining()`, all logged extensions included. */
  until?: number;
  /** When the release was called. */
  releasing?: number;
  released?: { readonly at: number; readonly outcome: "freed" | "gone" | "unknown" };
  /** When the acquire or the last extension returned: the validity ends at most a ttl later. */
  renewed: number;
  /** By how many ms `remaining()` promised more than that; ≤ 0 is honest. */
  excess: number;
  /** The code of the error that the acquire rejected with. */
  refused?: string;
  /** The outcomes of an idempotent run. */
  readonly ran: { readonly at: number; readonly how: string }[];
  /** The answer to its delivery. */
  answered?: { readonly at: number; readonly status: "executed" | "replayed"; readonly value: string };
  /** Its requests to the ledger. */
  readonly accesses: Access[];
}

/** A request to the ledger: the balance to write, and the answer (null: refused). */
export interface Access {
  readonly kind: "open" | "write";
  readonly invoked: number;
  readonly balance: number;
  answer?: { readonly at: number; readonly balance: number | null };
}

/** The holds that the records of one client describe. */
export function holdsOf(records: readonly ClientRecord[]): Hold[] {
  const holds = new Map<string, Hold>();
  for (const record of records) {
    if (record.type === "contended") continue;
    if (record.type === "acquiring") {
      const { hold: id, resource, ttl, at: invoked } = record;
      holds.set(id, {
        id,
        resource,
        ttl,
        invoked,
        renewed: 0,
        excess: -Infinity,
        ran: [],
        accesses: [],
      });
    } else {
      add(holds.get(record.hold)!, record);
    }
  }
  return [...holds.values()];
}

function add(hold: Hold, record: Exclude<ClientRecord, { type: "contended" | "acquiring" }>): void {
  const { at } = record;
  switch (record.type) {
    case "refused":
      hold.refused = record.code;
      break;
    case "granted":
      hold.granted = at;
      prolong(hold, at, record);
      if (record.fence !== undefined) hold.fence = record.fence;
      break;
    case "valid":
      prolong(hold, record.extended ? at : hold.renewed, record);
      break;
    case "releasing":
      hold.releasing = at;
      break;
    case "released":
      hold.released = { at, outcome: record.outcome };
      break;
    case "opening":
    case "writing":
      hold.accesses.push({
        kind: record.type === "opening" ? "open" : "write",
        invoked: at,
        balance: record.balance ?? 0,
      });
      break;
    case "opened":
    case "written":
      hold.accesses.at(-1)!.answer = { at, balance: record.balance };
      break;
    case "ran":
      hold.ran.push({ at, how: record.how });
      break;
    case "answered":
      hold.answered = { at, status: record.status, value: record.value };
  }
}

function prolong(hold: Hold, renewed: number, { at, until }: { at: number; until: number }): void {
  hold.until ??= until;
  // Over, or released: an extension may be answered after that. Nobody relies on it any more.
  if (until <= at) return;
  hold.renewed = renewed;
  hold.until = Math.max(hold.until, until);
  hold.excess = Math.max(hold.excess, until - renewed - hold.ttl);
}

/** The holds of locks as records for the linearizability checker. */
export function grantRecords(holds: readonly Hold[]): GrantRecord[] {
  return holds
    .filter(({ granted }) => granted !== undefined)
    .map(({ id, resource, invoked, granted, until, releasing, released, fence }) => ({
      resource,
      holder: id,
      invoked,
      acquired: granted,
      validUntil: until,
      releaseInvoked: releasing,
      releaseReturned: released?.at,
      released: released && released.outcome !== "unknown" ? released.outcome === "freed" : undefined,
      fence,
    }));
}

/** The accesses of fenced holds to their account. */
export function accessRecords(holds: readonly Hold[]): AccessRecord[] {
  return holds.flatMap(({ id, resource, fence, accesses }) =>
    accesses.map(({ kind, invoked, balance, answer }): AccessRecord => {
      const read = kind === "open" ? answer?.balance : null;
      return {
        resource,
        holder: id,
        access: kind === "open" ? { kind, fence: fence! } : { kind, fence: fence!, value: balance },
        invoked,
        returned: answer?.at,
        accepted: answer && answer.balance !== null,
        ...(typeof read === "number" && { value: read }),
      };
    }),
  );
}
