import { quorumOf, vetoOf } from "../field.ts";
import type { Announcement, Announcements } from "../wire/announcements.ts";
import { type Assumption, invariants } from "../world/invariants.ts";
import type { World } from "../world/world.ts";

/** One call of `debounce`, when its routine begins or when it ends without one. */
export interface DebounceCall {
  /** The client. */
  readonly by: string;
  /** Its last announcement. */
  readonly announcement: Announcement;
  /** From when on it may send its second round, in virtual ms. */
  readonly due: number;
}

/** The checks of what debounced calls do. */
export class DebounceHistories {
  readonly #announcements: Announcements;
  readonly #world: Pick<World, "check" | "now">;
  readonly #endpoints: number;

  /** @param endpoints how many there are */
  constructor(world: Pick<World, "check" | "now">, announcements: Announcements, endpoints: number) {
    this.#world = world;
    this.#announcements = announcements;
    this.#endpoints = endpoints;
  }

  /**
   * A routine begins: a quorum has confirmed its call, and no later one was there before.
   *
   * @param more what that needs beside the assumptions of debounced calls
   */
  begins(call: DebounceCall, more: readonly Assumption[] = []): void {
    const { by, announcement } = call;
    const { asked, granted } = secondRound(call);
    this.#world.check(
      "a quorum decides",
      granted >= quorumOf(this.#endpoints),
      () => `${by} runs its routine, and ${granted} endpoints confirmed that it is the last`,
    );
    // A call that never sent its second round may run no later than now.
    const least = Math.min(asked, this.#world.now);
    for (const later of this.#announcements.after(announcement)) {
      const since = this.#announcements.quorumSince(later);
      this.#world.check(
        "a later call replaces it",
        since >= least,
        () =>
          `${by} runs its routine; a quorum has had the later call of ${later.by} since ${since.toFixed()}`,
        [...invariants["a later call replaces it"], ...more],
      );
    }
  }

  /** A call ends without its routine: enough endpoints refused it. */
  skipped(call: DebounceCall): void {
    const { refused } = secondRound(call);
    const what = () => `${call.by} does not run its routine with ${refused} refusals`;
    this.#world.check("refusals are true", refused >= vetoOf(this.#endpoints), what);
  }
}

/** When a call may have sent its second round, and how many endpoints granted and refused that. */
function secondRound({ announcement: { sent, answers }, due }: DebounceCall) {
  const asked = sent.find((at) => at >= due) ?? Number.POSITIVE_INFINITY;
  const late = answers.filter(({ at }) => at >= asked);
  const count = (granted: boolean) =>
    new Set(late.filter((answer) => answer.granted === granted).map(({ server }) => server)).size;
  return { asked, granted: count(true), refused: count(false) };
}
