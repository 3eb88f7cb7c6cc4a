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
    why: "synchronizers that no small world has yet: once, read-write, reentrant and fair locks, latches, barriers, debounce",
    mutants: [
      "a run begins before its interval",
      "an interval ends with its run",
      "a claim counts as an interval",
      "a call runs the next interval",
      "readers ignore the writer",
      "members expire with the first of them",
      "members expire with the last arrival",
      "late execution undoes a member's extension",
      "the first release frees all holds",
      "members have no tombstone",
      "waiting writers are not announced",
      "an announcement stands for the ttl",
      "a repeated release forgets the first one",
      "the queue is ignored",
      "dead tickets are not skipped",
      "the queue's lock is granted twice",
      "repeated arrivals count again",
      "a minority opens a latch",
      "an arrival at a minority counts",
      "a party is not waited for",
      "a generation passes on a minority",
      "endpoints go back to an earlier generation",
      "no second round",
      "clocks decide which call is last",
      "a call accepts any sequence",
    ],
  },
];
