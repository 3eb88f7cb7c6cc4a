import type { DeliveryRow, Outcome } from "../rows.ts";

/** The copies of one delivery. */
export interface DeliveryGroup {
  /** Different for every group of a page, and the same whenever the page is rendered again. */
  readonly key: string;
  /** The row that was answered first. */
  readonly first: DeliveryRow;
  /** The other copies that were read, oldest first. */
  readonly copies: readonly DeliveryRow[];
  /** Whether copies between the first and the others may not have been read. */
  readonly hasGap: boolean;
}

/** What came of a delivery, in words. */
export interface Summary {
  readonly outcome: Outcome;
  /** What came of it, in one sentence. */
  readonly text: string;
  /** What came of the copies; empty when there are none. */
  readonly copies: string;
}

/**
 * Groups rows by delivery. The group whose newest row is newest comes first. Refused deliveries have no id that can be
 * relied on, so all of one sender that were refused for the same reason are one group.
 *
 * @param newest the newest rows, newest first
 * @param firsts the first rows of the deliveries among them
 *
 * @example
 * for (const { first, copies } of groupsOf(newest, firsts)) …
 */
export function groupsOf(
  newest: readonly DeliveryRow[],
  firsts: readonly DeliveryRow[],
): readonly DeliveryGroup[] {
  const rows = new Map<string, Map<number, DeliveryRow>>();
  for (const row of newest) {
    const key = keyOf(row);
    const group = rows.get(key) ?? new Map<number, DeliveryRow>();
    rows.set(key, group.set(row.id, row));
  }
  for (const row of firsts) rows.get(keyOf(row))?.set(row.id, row);
  const oldestRead = newest.at(-1)?.id ?? 0;
  return [...rows].map(([key, group]) => {
    const [first, ...copies] = [...group.values()].sort((a, b) => a.id - b.id) as [DeliveryRow];
    return { key, first, copies, hasGap: first.id < oldestRead };
  });
}

/**
 * Says what came of a delivery and of its copies.
 *
 * @example
 * summaryOf(group).text; // "Took effect once, under fence 17."
 */
export function summaryOf({ first, copies }: DeliveryGroup): Summary {
  const rows = [first, ...copies];
  const executed = rows.filter(({ outcome }) => outcome === "executed");
  if (executed.length > 0) {
    const others = rows.filter((row) => row !== executed[0]);
    return { ...effectOf(executed), copies: copiesText(others) };
  }
  const replayed = rows.find(({ outcome }) => outcome === "replayed");
  if (replayed) {
    const text = "Had taken effect before: this was a copy, and got the stored answer.";
    return { outcome: "replayed", text, copies: copiesText(rows.filter((row) => row !== replayed)) };
  }
  const newest = rows.at(-1)!;
  return { ...noEffectOf(newest), copies: copiesText(rows.slice(0, -1)) };
}

function keyOf({ provider, delivery, status, reason }: DeliveryRow): string {
  return JSON.stringify(delivery === null ? [provider, status, reason] : [provider, delivery]);
}

function effectOf(executed: readonly DeliveryRow[]): Pick<Summary, "outcome" | "text"> {
  const fences = executed.flatMap(({ fence }) => fence ?? []);
  const [fence] = fences;
  if (fence === undefined) return { outcome: "executed", text: "Answered; it asks for no effect." };
  if (fences.length === 1) return { outcome: "executed", text: `Took effect once, under fence ${fence}.` };
  return {
    outcome: "failed",
    text: `Took effect ${fences.length} times, under fences ${fences.join(", ")}.`,
  };
}

function noEffectOf({ outcome, reason }: DeliveryRow): Pick<Summary, "outcome" | "text"> {
  const why = reason === null ? "" : ` ${reason}`;
  if (outcome === "refused") return { outcome, text: `Refused, without effect.${why}` };
  if (outcome === "busy")
    return { outcome, text: `Not handled yet; the sender was told to try again.${why}` };
  return { outcome, text: `Failed, without effect; the sender was told to try again.${why}` };
}

const copyTexts: Readonly<Record<Outcome, readonly [one: string, many: string]>> = {
  executed: ["took effect", "took effect"],
  replayed: [
    "got the stored answer, without a second effect",
    "got the stored answer, without a second effect",
  ],
  busy: [
    "came while it was being handled, and was told to try again",
    "came while it was being handled, and were told to try again",
  ],
  refused: ["was refused", "were refused"],
  failed: ["failed, and was told to try again", "failed, and were told to try again"],
};

/** For example "4 copies got the stored answer, without a second effect; 1 copy failed, and was told to try again." */
function copiesText(rows: readonly DeliveryRow[]): string {
  const parts = (Object.keys(copyTexts) as Outcome[]).flatMap((outcome) => {
    const count = rows.filter((row) => row.outcome === outcome).length;
    const [one, many] = copyTexts[outcome];
    return count === 0 ? [] : [count === 1 ? `1 copy ${one}` : `${count} copies ${many}`];
  });
  return parts.length === 0 ? "" : `${parts.join("; ")}.`;
}
