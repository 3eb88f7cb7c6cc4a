import { wakeUpMutants } from "../sim/mutants-wake-ups.ts";

/** Mutants of the simulator that no small world can show, and why. */
export const elsewhere: readonly { readonly why: string; readonly mutants: readonly string[] }[] = [
  {
    why:
      "progress, not safety: contenders must get a part each in round after round, and every such round is a deviation; " +
      "two of them end, and the next round serves somebody",
    mutants: ["contenders wait for a silent endpoint"],
  },
  {
    why: "what the giver still sends names a nonce that has been taken over, where one endpoint or a quorum answers in time",
    mutants: ["handoff leaves the giver's handle alive"],
  },
  {
    why: "single flights, and addresses with a path: the worlds have none",
    mutants: ["an address with a path is accepted", "single flights share keys with runs"],
  },
  {
    why: "requests that several calls share: the worlds send one command at a time",
    mutants: [
      "answers of a pipeline are shifted",
      "what waited for too long is sent all the same",
      "a rollback without room is never sent",
    ],
  },
  {
    why: "tokens, a store and an authorization server: the worlds have none",
    mutants: ["what was read before the lock is refreshed", "kept tokens are not looked for"],
  },
  {
    why: "one job at a time: the worlds have none; test/contract/sync/singleton/schedules.test.ts has schedules of them",
    mutants: [
      "a replaced call runs its job",
      "a job does not wait for the one before it",
      "a cancelled job counts as one that never began",
    ],
  },
  {
    why: "streams of messages: the worlds have none",
    mutants: [...wakeUpMutants.map(({ name }) => name), "the dead in a queue are not skipped together"],
  },
];
