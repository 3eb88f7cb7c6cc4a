// A cron job on many replicas: every replica starts this program at every tick, and one of them runs the job.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { once } from "redlock-edge/sync";

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const options = {
  every: 50_000, // ms; less than the minute between two ticks, so that a late run does not skip the next one
  ttl: 3_000, // ms; how long the others wait for a replica that dies before it runs the job
};

// An outage is a QuorumError and is thrown: then the program fails, and a scheduler can start it again.
const outcome = await once(redlock, "report", options, async ({ fence, signal }) => {
  const reports = process.env.REPORTS_URL ?? "https://reports.example";
  // The fence is larger in every later run, so the receiver can refuse a late write of an earlier one.
  const stored = await fetch(`${reports}/daily?fence=${fence}`, { method: "PUT", signal });
  if (!stored.ok) throw new Error(`the reports answered ${stored.status}`);
});
console.log(outcome.ran ? "the job ran here" : "this interval's run has begun already");
