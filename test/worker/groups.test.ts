import { describe, expect, it } from "vitest";
import { groupsOf, summaryOf } from "../../worker/page/groups.ts";
import type { DeliveryRow, Outcome } from "../../worker/rows.ts";

/** A row of the delivery `name`; of a refused one without an id if there is no name. */
function row(
  id: number,
  outcome: Outcome,
  name: string | null = "a",
  reason: string | null = null,
): DeliveryRow {
  return {
    id,
    at: id,
    provider: "x",
    delivery: name,
    event: name && "paid",
    entity: name && "entity",
    outcome,
    status: 200,
    fence: outcome === "executed" ? 7 : null,
    requests: 0,
    commands: 0,
    ms: 1,
    reason,
    votes: null,
  };
}

const shape = (newest: readonly DeliveryRow[], firsts: readonly DeliveryRow[]) =>
  groupsOf(newest, firsts).map(({ first, copies, hasGap }) => [first.id, copies.map(({ id }) => id), hasGap]);

describe("groupsOf", () => {
  it("puts copies under their first, and the delivery that changed last on top", () => {
    const rows = [row(4, "replayed"), row(3, "executed", "b"), row(2, "replayed"), row(1, "executed")];
    expect(shape(rows, [row(1, "executed"), row(3, "executed", "b")])).toEqual([
      [1, [2, 4], false],
      [3, [], false],
    ]);
  });

  it("shows a first that is older than the rows that were read", () => {
    const rows = [row(90, "replayed"), row(89, "executed", "b")];
    expect(shape(rows, [row(1, "executed"), row(89, "executed", "b")])).toEqual([
      [1, [90], true],
      [89, [], false],
    ]);
  });

  it("groups what was refused by sender and reason, because its id may be anyone's", () => {
    const rows = [
      row(4, "refused", null, "old"),
      row(3, "refused", null, "forged"),
      row(2, "refused", null, "old"),
    ];
    expect(shape(rows, [])).toEqual([
      [2, [4], false],
      [3, [], false],
    ]);
  });
});

describe("summaryOf", () => {
  const summary = (...rows: DeliveryRow[]) => summaryOf(groupsOf([...rows].reverse(), [rows[0]!])[0]!);

  it.each<[string, DeliveryRow[], Outcome, string, string]>([
    [
      "its copies",
      [row(1, "executed"), row(2, "replayed"), row(3, "replayed"), row(4, "busy")],
      "executed",
      "Took effect once, under fence 7.",
      "2 copies got the stored answer, without a second effect; 1 copy came while it was being handled, and was told to try again.",
    ],
    [
      "one that failed first",
      [row(1, "failed", "a", "No quorum."), row(2, "executed")],
      "executed",
      "Took effect once, under fence 7.",
      "1 copy failed, and was told to try again.",
    ],
    [
      "a challenge",
      [{ ...row(1, "executed"), fence: null }],
      "executed",
      "Answered; it asks for no effect.",
      "",
    ],
    [
      "one whose first is no longer in the journal",
      [row(1, "replayed"), row(2, "replayed")],
      "replayed",
      "Had taken effect before: this was a copy, and got the stored answer.",
      "1 copy got the stored answer, without a second effect.",
    ],
    [
      "an effect that happened twice",
      [row(1, "executed"), { ...row(2, "executed"), fence: 9 }],
      "failed",
      "Took effect 2 times, under fences 7, 9.",
      "1 copy took effect.",
    ],
    [
      "a forged one",
      [row(1, "refused", null, "The signature does not fit.")],
      "refused",
      "Refused, without effect. The signature does not fit.",
      "",
    ],
  ])("says what came of %s", (_, rows, outcome, text, copies) => {
    expect(summary(...rows)).toEqual({ outcome, text, copies });
  });
});
