import type { Inspection, InspectionVote } from "../../src/index.ts";
import { quorumOf } from "../../src/quorum/tally.ts";
import type { Snapshot } from "./standing.ts";
import type { World } from "./world.ts";

// What inspections say, against what their requests met.

/** What the requests of one inspection met. */
type Looks = readonly (Snapshot & { readonly server: { readonly name: string } })[];

/**
 * Checks that each vote is what the endpoint had when it was asked, and that the rest follows from the votes. `what`:
 * who has inspected what; `count`: the number of endpoints.
 */
export function checkInspection(
  world: Pick<World, "check">,
  what: string,
  { held, remaining, fence, votes }: Inspection,
  { looks, count }: { readonly looks: Looks; readonly count: number },
): void {
  const found = votes.flatMap((vote) => {
    if (vote.outcome === "error") return [];
    return [looks.find((one) => one.server.name === vote.endpoint && isSameAs(one, vote))];
  });
  const isTrue = found.every((one) => one !== undefined);
  world.check("inspections are true", isTrue, () => `${what}: ${JSON.stringify(votes)}`);
  const snapshots = found.flatMap((one) => one ?? []);
  const quorum = quorumOf(count);
  const ends = endsOfHolder(snapshots);
  const expected = {
    held: ends.length >= quorum,
    remaining: ends[quorum - 1] ?? 0,
    fence: Math.max(0, ...snapshots.map(({ counter }) => Number(counter))) || undefined,
  };
  const isSame = held === expected.held && remaining === expected.remaining && fence === expected.fence;
  const detail = () =>
    `${what}: ${JSON.stringify({ held, remaining, fence })} of ${JSON.stringify(expected)}`;
  world.check("inspections are true", isSame, detail);
}

function isSameAs({ text, remaining, counter }: Snapshot, vote: InspectionVote): boolean {
  const outcome = text === undefined ? "free" : "held";
  const isSame = vote.outcome === outcome && (vote.remaining ?? 0) === remaining;
  return isSame && (vote.fence ?? 0) === Number(counter);
}

/** For how many ms each endpoint has the value that most of them have: the longest first. Nobody has a token here. */
function endsOfHolder(snapshots: readonly Snapshot[]): number[] {
  const same = snapshots.map(({ text }) => snapshots.filter((other) => text && other.text === text));
  const most = same.sort((one, two) => two.length - one.length)[0] ?? [];
  return most.map(({ remaining }) => remaining).sort((one, two) => two - one);
}

/**
 * Checks that each endpoint has shown a key without result and count, or, where something was removed, that a run began
 * after the removal. `said`: what `forget` returned.
 */
export function checkForgotten(
  world: Pick<World, "check">,
  what: string,
  said: boolean,
  { looks, count }: { readonly looks: Looks; readonly count: number },
): void {
  const clean = looks.filter(({ text = "P1 ", counter }) => text.startsWith("P1 ") && counter === "");
  const isBusy = said && looks.some(({ text }) => text?.startsWith("P1 "));
  const at = new Set(clean.map(({ server }) => server)).size;
  const detail = () => `${what} is forgotten, ${at} endpoints have shown neither result nor count`;
  world.check("what is forgotten is gone", at === count || isBusy, detail);
}
