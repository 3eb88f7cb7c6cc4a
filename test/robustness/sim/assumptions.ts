/**
 * What guarantees stand on. A simulation keeps all of them, or drops some on purpose: then what needs them may
 * break, and must be seen to break, or it would not be needed.
 */
export const assumptions = [
  /** Endpoints' clocks run no faster against clients' than the drift allowance says, and are not set. */
  "bounded drift",
  /** An endpoint keeps what it acknowledged, also when it crashes. */
  "kept memory",
  /** An endpoint that lost its memory stays away until all that it had granted is over. */
  "absence after memory loss",
  /** Between two looks at a client's two clocks one of them goes on: one is set back, or the other frozen, not both. */
  "a clock that goes on",
  /** Clients' wall clocks agree to within 50 ms. */
  "agreeing clocks",
  /** Nobody on the way sends a request again: it is executed once, or not at all. */
  "single execution",
  /** A request is executed less than a minute after it was sent, or never. */
  "bounded delay",
] as const;

export type Assumption = (typeof assumptions)[number];

/** What every grant needs that is to be the only one. */
const exclusive: readonly Assumption[] = [
  "bounded drift",
  "absence after memory loss",
  "a clock that goes on",
];

/** Every invariant, with what it needs. Those that need nothing hold whatever happens. */
export const invariants = {
  /**
   * At most one holder of a resource has validity left. Of a lock that was extended by less and then by more, a
   * repeated request may cut the longer extension: that one needs single execution as well.
   */
  "mutual exclusion": exclusive,
  /** No two grants of a resource draw the same fence, and of two grants the later one draws the larger. */
  "fences increase": ["kept memory"],
  /** The same without memory, for grants that lie further apart than the clocks do. */
  "fences outlive memory": ["agreeing clocks"],
  /** What a fenced ledger has acknowledged is in it. */
  "no lost update": ["kept memory"],
  /** A lock is handed out with validity left, and its end is told by its signal without anybody's answer. */
  "validity is honest": [],
  /** A grant was given by a quorum, a release that says so freed a quorum. */
  "a quorum decides": [],
  /** Contention is reported where endpoints refused, an outage where they failed. */
  "refusals are true": [],
  /** What a call leaves behind on an endpoint, it has at least tried to take back. */
  "nothing is abandoned": ["single execution"],
  /** With a tombstone, a request that is executed after its withdrawal takes nothing. */
  "withdrawn stays withdrawn": ["kept memory", "bounded delay", "bounded drift"],
  /** Every key has a ttl. */
  "every key expires": [],
  /** No more requests than a round has endpoints, and renewals with pauses. */
  "requests are bounded": [],
  /** Every call ends within its bounds, without an unhandled rejection, with a result or a typed error. */
  "calls end": [],
  /** `using` ends with what its routine came to. */
  "the routine's outcome wins": [],
  /** Once faults stop, or while a minority is silent, everybody who waits is served. */
  "waiters are served": [],
  /** A handler begins only when no other run of its key is within its lease. */
  "one handler at a time": exclusive,
  /** What a quorum has stored is what everybody gets from then on, and no handler begins again. */
  "a stored result stands": ["kept memory"],
  /** A replay is a handler's result, and while nothing is lost the same for everybody. */
  "replays agree": ["kept memory"],
  /** What is held stays held until it is given back or its validity is over. */
  "holds survive": ["bounded drift", "kept memory", "a clock that goes on", "single execution"],
  /** Nobody reads or writes beside a writer; of holds that were extended, as for a lock. */
  "a writer is alone": exclusive,
  /** What a writer has announced lasts for a pause and its requests after it asked last, by the endpoint's clock. */
  "the dead do not keep others out": ["bounded drift"],
  /** All holds of a reentrant lock are one owner's; of holds that were extended, as for a lock. */
  "one owner at a time": exclusive,
  /** While nothing is wrong, whoever came and was told to wait is served before everybody who comes later. */
  "served in order": [],
  /** Nobody is told that a latch is open before so many different ids have begun to arrive. */
  "a latch opens with the last": [],
  /** Whoever asks after somebody was told that a latch is open is told so, too. */
  "an open latch stays open": ["kept memory"],
  /** When all were told that they have arrived, one of them was told that the latch is open. */
  "arrivals count": ["kept memory"],
  /** Nobody passes a barrier as often as it does before all parties have begun to arrive as often. */
  "a barrier waits for all": ["kept memory"],
  /** The parties of a barrier pass the same generations, one after another. */
  "generations follow": ["kept memory"],
  /** At most one holder of a semaphore's slot has validity left; of one that was extended, as for a lock. */
  "one holder per slot": exclusive,
  /** No more permits of a semaphore are valid than its limit says, and none beside one of another limit. */
  "permits within the limit": exclusive,
  /** An interval of `once` has one run, by the clocks of the endpoints and of the run. */
  "one run per interval": exclusive,
  /** A call of `once` never runs when another run's interval ended only while it waited. */
  "one run per tick": [...exclusive, "kept memory"],
  /** No debounced call runs when a quorum had a later one before it asked again. */
  "a later call takes its place": exclusive,
  /** Histories of locks, permits and fenced registers have a sequential explanation. */
  linearizable: [...exclusive, "kept memory"],
} as const satisfies Record<string, readonly Assumption[]>;

export type Invariant = keyof typeof invariants;
