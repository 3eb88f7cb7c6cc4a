/**
 * The assumptions of the library's guarantees. A simulation keeps all of them, or drops some on purpose. Then the invariants
 * that need them may break; if they never did, the assumption would not be needed.
 */
export const assumptions = [
  /** Endpoints' clocks are not set, and run faster than clients' by no more than the drift allowance. */
  "bounded drift",
  /** An endpoint keeps what it acknowledged, also through a crash. */
  "kept memory",
  /** An endpoint that lost its memory stays away until all that it had granted has expired. */
  "absence after memory loss",
  /**
   * Between two reads of a client's two clocks at least one advances: one is set back or the other frozen, not both.
   */
  "a clock that goes on",
  /** Clients' wall clocks agree to within 50 ms. */
  "agreeing clocks",
  /** No proxy or client in between repeats requests: each is executed at most once. */
  "single execution",
  /** A request is executed less than a minute after it was sent, or never. */
  "bounded delay",
] as const;

export type Assumption = (typeof assumptions)[number];

/** The needs of every invariant of mutual exclusion. */
const exclusive: readonly Assumption[] = [
  "bounded drift",
  "absence after memory loss",
  "a clock that goes on",
];

/** Every invariant, and the assumptions that it needs. Those without any always hold. */
const needs = {
  /**
   * At most one holder of a resource has validity left. Of a lock that was extended by less and then by more, a
   * repeated request may cut the longer extension: that one needs single execution as well.
   */
  "mutual exclusion": exclusive,
  /**
   * No two grants of a resource draw the same fence, and of two grants the later one draws the larger. Where counters
   * expire meanwhile, this needs bounded drift as well.
   */
  "fences increase": ["kept memory"],
  /** The same after a loss of memory, for grants that lie further apart than the clocks differ. */
  "fences outlive memory": ["agreeing clocks"],
  /** A fenced ledger contains every update that it acknowledged. */
  "no lost update": ["kept memory"],
  /**
   * A lock is returned with validity left, none goes beyond its deadline, and its signal reports the end of its
   * validity without any answer. For the deadline, this needs a clock that goes on.
   */
  "validity is honest": [],
  /**
   * A grant has the votes of a quorum. A release that returns true removed the value from a quorum, one that returns
   * false found it gone at so many that no quorum is left. That the latter has not freed a quorum itself needs kept
   * memory and bounded drift; for plain locks also single execution.
   */
  "a quorum decides": [],
  /**
   * Contention is reported where other clients caused the refusals, an outage where endpoints failed. Of plain
   * commands, a repetition may be refused because of its first execution.
   */
  "refusals are true": [],
  /**
   * A call has at least tried to roll back whatever it left on an endpoint. A repetition may store what its first
   * execution was refused.
   */
  "nothing is abandoned": ["single execution"],
  /**
   * With a tombstone, a request that is executed after its rollback or release stores nothing. A release leaves one
   * only where a request is unanswered: for a request that is executed once more, this needs single execution as
   * well.
   */
  "rolled back stays rolled back": ["kept memory", "bounded delay", "bounded drift"],
  /** Every key has a ttl. */
  "every key expires": [],
  /** A round sends a bounded number of requests to each endpoint, and extensions pause. */
  "requests are bounded": [],
  /**
   * Every call ends within its bounds, without an unhandled rejection, with a result or a typed error; a release that
   * is decided does not wait for a silent endpoint's timeout.
   */
  "calls end": [],
  /** `using`, `once`, `debounce` and idempotent runs end with their routine's value or error. */
  "the routine's outcome wins": [],
  /**
   * After the faults, also while a minority is silent, every waiter is served within 15 s after what dead processes
   * left behind has expired; with wake-ups, 35 s more, and 10 s for each process. While the network is good, a message wakes
   * who stands by at a mailbox.
   */
  "waiters are served": [],
  /**
   * A waiter that is woken up by messages asks as often as its backoff says without a stream, and once after its stream stands,
   * 2 s after its last round or message, and 30 s after its last round in any case, whatever becomes of streams and
   * messages.
   */
  "waiters ask": [],
  /** A stream ends with the call that waits by it, and where it does not stand within the call's timeout. */
  "streams end": [],
  /**
   * `refreshOnce` exchanges a token only once, unless the process of the first exchange was paused, died, lost its
   * hold, or its answer; and newer tokens are not replaced by older ones. For tokens that Redis keeps for their
   * store, this needs kept memory as well.
   */
  "a token is used once": exclusive,
  /** A handler begins only when no other run of its key has a valid lease. */
  "one handler at a time": exclusive,
  /** Once a quorum has stored a result, every caller gets it, and no handler begins again. */
  "a stored result stands": ["kept memory"],
  /** A replay is a handler's result, and the same for all callers. */
  "replays agree": ["kept memory"],
  /** A hold lasts until it is released or its validity ends. */
  "holds survive": ["bounded drift", "kept memory", "a clock that goes on", "single execution"],
  /**
   * Wherever a holder has validity left, a quorum of endpoints has its value for at least as long. Of what was
   * extended by less and then by more, a repeated request may cut the longer extension: that needs single execution
   * as well.
   */
  "what is held stands": ["bounded drift", "kept memory", "a clock that goes on"],
  /** When `verify` returns true, a quorum had the value while it asked, and validity is left. */
  "verify is true": [],
  /** No other reader or writer holds beside a writer. For extended holds, as for a lock. */
  "a writer is alone": exclusive,
  /** A writer's announcement expires a pause and two timeouts after its last request, by the endpoint's clock. */
  "the dead do not keep others out": ["bounded drift"],
  /** With wake-ups and without faults, who queues gets what is free, although others have died in the queue. */
  "a free lock is taken": [],
  /** All holds of a reentrant lock are one owner's. For extended holds, as for a lock. */
  "one owner at a time": exclusive,
  /**
   * Without faults of endpoints, waiters that are queued are served before later ones, whatever becomes of messages and
   * replies.
   */
  "served in order": [],
  /** No call returns that a latch is open before as many ids as it counts have begun to arrive. */
  "a latch opens with the last": [],
  /** Once a call has returned that a latch is open, every later call returns so. */
  "an open latch stays open": ["kept memory"],
  /** When all arrivals are confirmed, one of those calls has returned that the latch is open. */
  "arrivals count": ["kept memory"],
  /** A party passes a barrier for the n-th time only when all parties have begun to arrive n times. */
  "a barrier waits for all": ["kept memory"],
  /** All parties of a barrier pass the same generations in order. */
  "generations follow": ["kept memory"],
  /** At most one holder of a semaphore's slot has validity left. For extended holds, as for a lock. */
  "one holder per slot": exclusive,
  /** A permit is one below its caller's limit, and the valid ones never exceed the largest limit. */
  "permits within the limit": exclusive,
  /** An interval of `once` has one run, by the endpoints' and the run's clocks. */
  "one run per interval": exclusive,
  /** A call of `once` does not run when another run's interval ended while it waited. */
  "one run per tick": [...exclusive, "kept memory"],
  /** A debounced call does not run when a quorum had a later one before its second round. */
  "a later call replaces it": exclusive,
  /** At most one turn of a mailbox has validity left. */
  "one turn at a time": exclusive,
  /** What a mailbox has acknowledged is handled, given up or dropped, once somebody drains it. */
  "an acknowledged message is not lost": ["kept memory"],
  /**
   * While the network is good, every message is handled when all posts have returned, and once. At any time, no message that
   * was left with a holder is unseen when a quorum has let its turn go, and each endpoint lets go only what it has shown.
   */
  "a close leaves nothing behind": ["kept memory"],
  /**
   * A message that was acknowledged before the post of another began is handled before it, unless one of them has failed, or the
   * other is handled before its post has returned.
   */
  "messages keep their order": [...exclusive, "kept memory"],
  /** What a quorum remembers as handled before a turn was asked for is not read in it, and nothing is read twice in a turn. */
  "a message is handled once": ["kept memory"],
  /** When a post says that its message is queued, a quorum has it and knows the holder; when handled, it was. */
  "what is said of a message is true": [],
  /** A message has failed at most as often as it has waited in another turn. */
  "failures of a message are true": [],
  /**
   * At one endpoint, a claim writes its values at all its keys, or at none, and never over another's; a keep does so where
   * all have what is expected there.
   */
  "all or none": [],
  /** An end replaces or deletes at each key what is expected there, and changes no other. */
  "each key by itself": [],
  /** When a run with locks has stored its result, no quorum has its locks. */
  "a run frees its lock": ["kept memory"],
  /** Of a counted key no more handlers begin than may, unless one fails; then the count begins again. */
  "attempts are bounded": ["kept memory"],
  /** `forget` never removes a run that is under way. */
  "a run is not forgotten": [],
  /** When `forget` returns, no endpoint has a result or a count, and the key runs again. */
  "what is forgotten is gone": [],
  /** What is held all the time is shown as held by `inspect`, under the assumptions of what is held stands. */
  "inspections are true": [],
  /**
   * `forceRelease` returns whether there was anything to free, and when it returns, a quorum has nothing. This needs
   * single execution: a repetition may acquire again what was freed.
   */
  "an operator frees it": [],
} as const satisfies Record<string, readonly Assumption[]>;

export type Invariant = keyof typeof needs;

export const invariants: Readonly<Record<Invariant, readonly Assumption[]>> = needs;
