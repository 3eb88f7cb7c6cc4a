/** Mutants of the simulator that no small world can show, and why. */
export const elsewhere: readonly { readonly why: string; readonly mutants: readonly string[] }[] = [
  {
    why: "progress or speed, not safety: a schedule is a finite prefix, and has no fair share of anything",
    mutants: [
      "contenders wait for a silent endpoint",
      "held for longer than maxHold",
      "one expiry for lease and result",
    ],
  },
  {
    why: "a value or an option, and no order of messages",
    mutants: [
      "result without JSON fails its run",
      "too large a result is sent again and again",
      "claim outlives the deadline",
    ],
  },
  {
    why: "not within two deviations: a minority must have moved on, and the party that saw it must come back",
    mutants: ["a generation passes on a minority"],
  },
];
