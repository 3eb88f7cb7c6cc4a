/**
 * The assumptions of the library's guarantees, and what each means. A simulation keeps all of them, or drops some on
 * purpose. Then the invariants that need them may break; if they never did, the assumption would not be needed.
 */
const meanings = {
  "bounded drift":
    "Endpoints' clocks are not set, and run faster than clients' by no more than the drift allowance.",
  "kept memory": "An endpoint keeps what it acknowledged, also through a crash.",
  "absence after memory loss":
    "An endpoint that lost its memory stays away until all that it had granted has expired.",
  "a clock that goes on":
    "Between two reads of a client's two clocks at least one advances: one is set back or the other frozen, not " +
    "both.",
  "agreeing clocks": "Clients' wall clocks agree to within 50 ms.",
  "single execution": "No proxy or client in between repeats requests: each is executed at most once.",
  "bounded delay": "A request is executed less than a minute after it was sent, or never.",
} as const;

export type Assumption = keyof typeof meanings;

export const assumptions = Object.keys(meanings) as Assumption[];

/** The needs of every invariant of mutual exclusion. */
const exclusive: readonly Assumption[] = [
  "bounded drift",
  "absence after memory loss",
  "a clock that goes on",
];

interface Claim {
  readonly means: string;
  readonly needs: readonly Assumption[];
}

/** Every invariant: what it says, and the assumptions that it needs. Those without any always hold. */
const claims = {
  "mutual exclusion": {
    means:
      "At most one holder of a resource has validity left. Of a lock that was extended by less and then by more, " +
      "a repeated request may cut the longer extension: that one needs single execution as well.",
    needs: exclusive,
  },
  "fences increase": {
    means:
      "No two grants of a resource draw the same fence, and of two grants the later one draws the larger. Where " +
      "counters expire meanwhile, this needs bounded drift as well.",
    needs: ["kept memory"],
  },
  "fences outlive memory": {
    means: "The same after a loss of memory, for grants that lie further apart than the clocks differ.",
    needs: ["agreeing clocks"],
  },
  "no lost update": {
    means: "A fenced ledger contains every update that it acknowledged.",
    needs: ["kept memory"],
  },
  "validity is honest": {
    means:
      "A lock is returned with validity left, none goes beyond its deadline, and its signal reports the end of " +
      "its validity without any answer. For the deadline, this needs a clock that goes on.",
    needs: [],
  },
  "a quorum decides": {
    means:
      "A grant has the votes of a quorum. A release that returns true removed the value from a quorum, one that " +
      "returns false found it gone at so many that no quorum is left. That the latter has not freed a quorum " +
      "itself needs kept memory and bounded drift; for plain locks also single execution.",
    needs: [],
  },
  "refusals are true": {
    means:
      "Contention is reported where other clients caused the refusals, an outage where endpoints failed. Of plain " +
      "commands, a repetition may be refused because of its first execution.",
    needs: [],
  },
  "nothing is abandoned": {
    means:
      "A call has at least tried to roll back whatever it left on an endpoint. A repetition may store what its " +
      "first execution was refused.",
    needs: ["single execution"],
  },
  "rolled back stays rolled back": {
    means:
      "With a tombstone, a request that is executed after its rollback or release stores nothing. A release " +
      "leaves one only where a request is unanswered: for a request that is executed once more, this needs single " +
      "execution as well.",
    needs: ["kept memory", "bounded delay", "bounded drift"],
  },
  "every key expires": {
    means: "Every key has a ttl.",
    needs: [],
  },
  "requests are bounded": {
    means: "A round sends a bounded number of requests to each endpoint, and extensions pause.",
    needs: [],
  },
  "calls end": {
    means:
      "Every call ends within its bounds, without an unhandled rejection, with a result or a typed error; a release that " +
      "is decided does not wait for a silent endpoint's timeout.",
    needs: [],
  },
  "the routine's outcome wins": {
    means: "`using`, `once`, `debounce` and idempotent runs end with their routine's value or error.",
    needs: [],
  },
  "waiters are served": {
    means:
      "After the faults, also while a minority is silent, every waiter is served within 15 s after what dead " +
      "processes left behind has expired; with wake-ups, 35 s more, and 10 s for each process.",
    needs: [],
  },
  "waiters ask": {
    means:
      "A waiter that is woken up by messages asks when its stream stands, as often as its backoff says without a " +
      "stream, 4 s after its last round or message, and 30 s after its last round in any case, whatever becomes " +
      "of streams and messages.",
    needs: [],
  },
  "streams end": {
    means:
      "A stream ends with the call that waits by it, and where it does not stand within the call's timeout.",
    needs: [],
  },
  "a token is used once": {
    means:
      "`refreshOnce` exchanges a token only once, unless the process of the first exchange was paused, died, lost its " +
      "hold, or its answer; and newer tokens are not replaced by older ones. For tokens that Redis keeps for their " +
      "store, this needs kept memory as well.",
    needs: exclusive,
  },
  "one handler at a time": {
    means: "A handler begins only when no other run of its key has a valid lease.",
    needs: exclusive,
  },
  "a stored result stands": {
    means: "Once a quorum has stored a result, every caller gets it, and no handler begins again.",
    needs: ["kept memory"],
  },
  "replays agree": {
    means: "A replay is a handler's result, and the same for all callers.",
    needs: ["kept memory"],
  },
  "holds survive": {
    means: "A hold lasts until it is released or its validity ends.",
    needs: ["bounded drift", "kept memory", "a clock that goes on", "single execution"],
  },
  "what is held stands": {
    means:
      "Wherever a holder has validity left, a quorum of endpoints has its value for at least as long. Of what was " +
      "extended by less and then by more, a repeated request may cut the longer extension: that needs single " +
      "execution as well.",
    needs: ["bounded drift", "kept memory", "a clock that goes on"],
  },
  "verify is true": {
    means: "When `verify` returns true, a quorum had the value while it asked, and validity is left.",
    needs: [],
  },
  "a writer is alone": {
    means: "No other reader or writer holds beside a writer. For extended holds, as for a lock.",
    needs: exclusive,
  },
  "the dead do not keep others out": {
    means:
      "A writer's announcement expires a pause and two timeouts after its last request, by the endpoint's clock.",
    needs: ["bounded drift"],
  },
  "a free lock is taken": {
    means:
      "With wake-ups and without faults, who queues gets what is free, although others have died in the queue.",
    needs: [],
  },
  "one owner at a time": {
    means: "All holds of a reentrant lock are one owner's. For extended holds, as for a lock.",
    needs: exclusive,
  },
  "served in order": {
    means:
      "Without faults, waiters that are queued are served before later ones, unless the stream that calls them has one.",
    needs: [],
  },
  "a latch opens with the last": {
    means: "No call returns that a latch is open before as many ids as it counts have begun to arrive.",
    needs: [],
  },
  "an open latch stays open": {
    means: "Once a call has returned that a latch is open, every later call returns so.",
    needs: ["kept memory"],
  },
  "arrivals count": {
    means: "When all arrivals are confirmed, one of those calls has returned that the latch is open.",
    needs: ["kept memory"],
  },
  "a barrier waits for all": {
    means: "A party passes a barrier for the n-th time only when all parties have begun to arrive n times.",
    needs: ["kept memory"],
  },
  "generations follow": {
    means: "All parties of a barrier pass the same generations in order.",
    needs: ["kept memory"],
  },
  "one holder per slot": {
    means: "At most one holder of a semaphore's slot has validity left. For extended holds, as for a lock.",
    needs: exclusive,
  },
  "permits within the limit": {
    means: "The valid permits of a semaphore never exceed its limit, and all have the same limit.",
    needs: exclusive,
  },
  "one run per interval": {
    means: "An interval of `once` has one run, by the endpoints' and the run's clocks.",
    needs: exclusive,
  },
  "one run per tick": {
    means: "A call of `once` does not run when another run's interval ended while it waited.",
    needs: [...exclusive, "kept memory"],
  },
  "a later call replaces it": {
    means: "A debounced call does not run when a quorum had a later one before its second round.",
    needs: exclusive,
  },
  "all or none": {
    means:
      "At one endpoint, a begin of a run with locks writes its record and all its locks, or nothing, and never " +
      "over another's; an extension extends all of them, or none.",
    needs: [],
  },
  "each half by itself": {
    means:
      "The end of a run with locks decides its record and each of its locks by what stands there, and changes no " +
      "other.",
    needs: [],
  },
  "a run frees its lock": {
    means: "When a run with locks has stored its result, no quorum has its locks.",
    needs: ["kept memory"],
  },
  "attempts are bounded": {
    means: "Of a counted key no more handlers begin than may, unless one fails; then the count begins again.",
    needs: ["kept memory"],
  },
  "a run is not forgotten": {
    means: "`forget` never removes a run that is under way.",
    needs: [],
  },
  "what is forgotten is gone": {
    means: "When `forget` returns, no endpoint has a result or a count, and the key runs again.",
    needs: [],
  },
  "inspections are true": {
    means:
      "`inspect` returns what the endpoints have; what is held all the time is shown as held, under the " +
      "assumptions of what is held stands.",
    needs: [],
  },
  "an operator frees it": {
    means:
      "`forceRelease` returns whether there was anything to free, and when it returns, a quorum has nothing. " +
      "This needs single execution: a repetition may acquire again what was freed.",
    needs: [],
  },
  linearizable: {
    means: "Histories of locks, permits and fenced cells are linearizable.",
    needs: [...exclusive, "kept memory"],
  },
} as const satisfies Record<string, Claim>;

export type Invariant = keyof typeof claims;

/** The assumptions that each invariant needs. */
export const invariants = Object.fromEntries(
  Object.entries(claims).map(([invariant, { needs }]) => [invariant, needs]),
) as Record<Invariant, readonly Assumption[]>;

/** For lists that are printed. */
export const meaningOf = (name: Assumption | Invariant): string =>
  name in claims ? claims[name as Invariant].means : meanings[name as Assumption];
