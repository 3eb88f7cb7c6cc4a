// A cron job on many replicas: every replica starts this program at every tick, and one of them runs the job.
//
//   npx redlock-edge dev            # in another terminal; paste the export lines that it prints here
//   node examples/cron/interval.mjs & node examples/cron/interval.mjs & node examples/cron/interval.mjs & wait

import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";

const interval = 60_000;
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
// The nearest tick, because timers fire a little late or early.
const tick = new Date(Math.round(Date.now() / interval) * interval).toISOString();

try {
  // The lock is named after the tick and never released: a later replica finds it held, and the next tick has its own
  // lock even if a clock is slow. It waits, because replicas that start at the same instant may each get some of the
  // endpoints; with tryAcquire none of them would run the job.
  await redlock.acquire(`report:${tick}`, { ttl: 2 * interval, wait: 5_000 });
  console.log(`replica ${process.pid} runs the job of ${tick}`);
} catch (error) {
  // An outage is a QuorumError and is thrown: a cron job should rather be retried than skipped.
  if (!(error instanceof LockHeldError)) throw error;
  console.log(`replica ${process.pid} leaves the job of ${tick} to another`);
}
