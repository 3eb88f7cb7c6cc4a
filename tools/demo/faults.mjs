// The `times` of a fault rule, never used up: the remaining ones tell how many requests it has hit.
const endless = 1_000_000;

/**
 * What is done once this share of a phase's deliveries has ended, from 0 to 1. At `Infinity`: after the phase.
 *
 * @typedef {{ at: number, act: () => unknown }} Step
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

  /** Kills the first endpoint, as by SIGKILL, and starts it again. The second one tells what it has missed. */
  function kill(from, to) {
    let before = 0;
    const stop = () => {
      before = second.log.requests;
      return first.stop();
    };
    const start = () => {
      hits["missed while killed"] += second.log.requests - before;
      return first.start();
    };
    return [
      { at: from, act: stop },
      { at: to, act: start },
    ];
  }

  /** A rule for the whole phase. */
  function inject({ faults }, rule, hit) {
    const end = () => {
      for (const { times } of faults.list()) hits[hit] += endless - times;
      faults.clear();
    };
    return [
      { at: 0, act: () => faults.add({ ...rule, times: endless }) },
      { at: Number.POSITIVE_INFINITY, act: end },
    ];
  }

  const slow = (ms) => inject(second, { fault: "delay", ms }, "slowed");
  const dropReplies = (probability) => inject(third, { fault: "drop-reply", probability }, "replies dropped");
  return {
    hits,
    phases: [
      phase("all healthy"),
      phase("endpoint 1 killed and back", kill(0.1, 0.7)),
      phase("endpoint 2 slow, .1-.4 s", slow([100, 400])),
      phase("endpoint 3 drops replies", dropReplies(0.7)),
      phase("all of that, in part", kill(0.1, 0.6), slow([20, 200]), dropReplies(0.2)),
    ],
  };
}

/**
 * @typedef {object} FaultPhase
 * @property {string} name
 * @property {(done: number) => Promise<void>} onProgress takes the steps that are due; `done` is the share of the phase's
 *   deliveries that have ended, from 0 to 1
 * @property {() => Promise<void>} after takes those that are left, so that no fault remains
 */

/** Takes steps one after another: deliveries end concurrently, and a start must not overtake the stop before it. */
function phase(name, ...faults) {
  const steps = faults.flat().sort((a, b) => a.at - b.at);
  let work = Promise.resolve();
  async function onProgress(done) {
    while (steps[0]?.at <= done) work = work.then(steps.shift().act);
    await work;
  }
  return { name, onProgress, after: () => onProgress(Number.POSITIVE_INFINITY) };
}
