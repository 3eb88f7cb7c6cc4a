/** Mutants of the simulator that no small world can show, and why. */
export const elsewhere: readonly { readonly why: string; readonly mutants: readonly string[] }[] = [
  {
    why: "progress or speed, not safety: a schedule is a finite prefix, and has no fair share of anything",
    mutants: [
      "contenders wait for a silent endpoint",
      "stolen lock is extended without a pause",
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
  {
    why: "calls and checks that no small world has yet: verify, deadlines, operators, counted attempts, HTTP answers",
    mutants: [
      "verify believes the validity",
      "verify ignores the end of the validity",
      "validity outlasts the deadline",
      "release replies and deletes nothing",
      "resumed lock has a whole ttl",
      "inspection counts different holders together",
      "inspection takes silence for a free lock",
      "a minority frees a lock",
      "forget removes a run under way",
      "forget ignores silent endpoints",
      "one attempt too many",
      "attempts are not raised",
      "status of an answer is ignored",
      "result beside an error counts",
    ],
  },
];
