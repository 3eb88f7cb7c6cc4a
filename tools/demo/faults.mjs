// The `times` of a fault rule, never used up: the remaining ones tell how many requests it has hit.
const endless = 1_000_000;

/**
 * @typedef {object} FaultPhase
 * @property {string} name
 * @property {(done: number) => Promise<void>} onProgress injects faults; `done` is the share of the phase's deliveries
 *   that have ended, from 0 to 1
 * @property {() => Promise<void>} after removes all faults
 */

/**
 * The faults of the demo, phase by phase. Two of three endpoints must answer. So when several have faults at the same
 * time, only a part of their requests fails: some requests get no quorum, but retries succeed.
 *
 * @param {readonly any[]} endpoints three of `start`
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
    outage({
      endpoint: first,
      from,
      to,
      other: second,
      onMissed: (missed) => {
        hits["missed while killed"] += missed;
      },
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

function together(name, ...faults) {
  return {
    name,
    async onProgress(done) {
      await Promise.all(faults.map((fault) => fault.onProgress(done)));
    },
    async after() {
      await Promise.all(faults.map((fault) => fault.after()));
    },
  };
}

/** A rule for the whole phase. `onHits` is called with the number of requests that it hit. */
function inject(endpoint, rule, onHits) {
  return {
    async onProgress(done) {
      if (done === 0) endpoint.faults.add({ ...rule, times: endless });
    },
    async after() {
      for (const { times } of endpoint.faults.list()) onHits(endless - times);
      endpoint.faults.clear();
    },
  };
}

/**
 * Kills an endpoint, as by SIGKILL, and starts it again. `from` and `to` are shares of the phase's deliveries. `onMissed`
 * is called with the number of requests that `other` received meanwhile.
 */
function outage({ endpoint, from, to, other, onMissed }) {
  let state = "before";
  let requestsBefore = 0;
  // Stop and start one after another: deliveries end concurrently, and a start must not overtake the stop before it.
  let work = Promise.resolve();
  function restart() {
    if (state === "killed") {
      state = "back";
      onMissed(other.log.requests - requestsBefore);
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
      if (done >= to) restart();
      await work;
    },
    after: restart,
  };
}
