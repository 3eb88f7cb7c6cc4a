// Rules of faults end by themselves after so many hits; what is left tells how often they did hit.
const endless = 1_000_000;

/**
 * @typedef {object} FaultPhase
 * @property {string} name
 * @property {(done: number) => Promise<void>} onProgress makes things go wrong; `done` is the share of the
 *   phase's deliveries that is over, 0 … 1
 * @property {() => Promise<void>} after mends everything
 */

/**
 * What goes wrong in the demo, phase by phase. Of three endpoints two must answer, so where several are in
 * trouble at once it is in part: some requests find no quorum, and what senders send again gets through.
 *
 * @param {readonly any[]} endpoints three of `startEndpoints`
 * @returns {{ phases: FaultPhase[], hits: Record<string, number> }} how many requests each fault has hit so far
 *
 * @example
 * const { phases, hits } = planFaults(local.endpoints);
 */
export function planFaults([first, second, third]) {
  const hits = { "missed while killed": 0, slowed: 0, "replies dropped": 0 };
  const slow = (ms) =>
    inject(second, { fault: "delay", ms }, (count) => {
      hits.slowed += count;
    });
  const dropReplies = (probability) =>
    inject(third, { fault: "drop-reply", probability }, (count) => {
      hits["replies dropped"] += count;
    });
  const kill = (from, to) =>
    outage(first, from, to, second, (missed) => {
      hits["missed while killed"] += missed;
    });
  return {
    hits,
    phases: [
      together("all healthy"),
      together("endpoint 1 killed and back", kill(0.1, 0.7)),
      together("endpoint 2 slow, .1-.4 s", slow([100, 400])),
      together("endpoint 3 drops replies", dropReplies(0.7)),
      together("all of that, in part", kill(0.1, 0.6), slow([20, 200]), dropReplies(0.2)),
    ],
  };
}

function together(name, ...troubles) {
  return {
    name,
    async onProgress(done) {
      await Promise.all(troubles.map((trouble) => trouble.onProgress(done)));
    },
    async after() {
      await Promise.all(troubles.map((trouble) => trouble.after()));
    },
  };
}

/** A rule that holds for the whole phase. `tell` hears how many requests it has hit. */
function inject(endpoint, rule, tell) {
  return {
    async onProgress(done) {
      if (done === 0) endpoint.faults.add({ ...rule, times: endless });
    },
    async after() {
      for (const { times } of endpoint.faults.list()) tell(endless - times);
      endpoint.faults.clear();
    },
  };
}

/** Kills an endpoint, as by SIGKILL, and lets it come back. `tell` hears how many requests `other` had meanwhile. */
function outage(endpoint, from, to, other, tell) {
  let state = "before";
  let requestsBefore = 0;
  // One after the other: deliveries end at the same time, and a start must not overtake the stop before it.
  let work = Promise.resolve();
  function comeBack() {
    if (state === "killed") {
      state = "back";
      tell(other.log.requests - requestsBefore);
      work = work.then(() => endpoint.start());
    }
    return work;
  }
  return {
    async onProgress(done) {
      if (state === "before" && done >= from) {
        state = "killed";
        requestsBefore = other.log.requests;
        work = work.then(() => endpoint.stop());
      }
      if (done >= to) comeBack();
      await work;
    },
    after: comeBack,
  };
}
