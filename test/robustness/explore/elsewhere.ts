/** Mutants of the simulator that no small world can show, and why. */
export const elsewhere: readonly { readonly why: string; readonly mutants: readonly string[] }[] = [
  {
    why: "progress or speed, not safety: a schedule is a finite prefix, and has no fair share of anything",
    mutants: ["contenders wait for a silent endpoint"],
  },
  {
    why: "a value or an option, and no order of messages",
    mutants: [],
  },
  {
    why: "not within two deviations: a minority must have moved on, and the party that saw it must come back",
    mutants: ["a generation passes on a minority"],
  },
];
