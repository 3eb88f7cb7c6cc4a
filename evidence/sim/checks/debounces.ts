import { quorumOf, vetoOf } from "../field.ts";
import type { Announcements } from "../wire/announcements.ts";
import { type Assumption, invariants } from "../world/invariants.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";

// What debounced calls do: each announces itself, and asks in a second round whether it is the last one.

/** The client that has made a call. */
interface Caller {
  readonly world: World;
  readonly wire: { readonly announcements: Announcements };
  readonly process: Process;
}

/**
 * A routine begins: a quorum has confirmed its call, the client's last one, and no later one was there before.
 *
 * @param due from when on the call may send its second round, in virtual ms
 * @param more what that needs beside the assumptions of debounced calls
 */
export function checkLast(caller: Caller, key: string, due: number, more: readonly Assumption[] = []): void {
  const { world, wire, process } = caller;
  const { announcements } = wire;
  const { asked, granted } = secondRound(caller, key, due);
  const what = () =>
    `${process.name} runs its routine, and ${granted} endpoints confirmed that it is the last`;
  world.check("a quorum decides", granted >= quorumOf(world.servers.length), what);
  // A call that never sent its second round may run no later than now.
  const least = Math.min(asked, world.now);
  for (const later of announcements.after(announcements.last(process, key)!)) {
    const since = announcements.quorumSince(later);
    world.check(
      "a later call replaces it",
      since >= least,
      () =>
        `${process.name} runs its routine; a quorum has had the later call of ${later.by} since ${since.toFixed()}`,
      [...invariants["a later call replaces it"], ...more],
    );
  }
}

/** A call ends without its routine: enough endpoints refused it. */
export function checkReplaced(caller: Caller, key: string, due: number): void {
  const { world, process } = caller;
  const { refused } = secondRound(caller, key, due);
  const what = () => `${process.name} does not run its routine with ${refused} refusals`;
  world.check("refusals are true", refused >= vetoOf(world.servers.length), what);
}

/** When a call may have sent its second round, and how many endpoints granted and refused that. */
function secondRound({ wire, process }: Caller, key: string, due: number) {
  const { sent, answers } = wire.announcements.last(process, key)!;
  const asked = sent.find((at) => at >= due) ?? Number.POSITIVE_INFINITY;
  const late = answers.filter(({ at }) => at >= asked);
  const count = (granted: boolean) =>
    new Set(late.filter((answer) => answer.granted === granted).map(({ server }) => server)).size;
  return { asked, granted: count(true), refused: count(false) };
}
