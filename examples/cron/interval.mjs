// A job on many replicas: every replica starts it at every tick, one runs it.
//
//   npx redlock-edge dev            # in another terminal; paste its export lines here
//   node examples/cron/interval.mjs & node examples/cron/interval.mjs & node examples/cron/interval.mjs & wait

import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";

const interval = 60_000;
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
// The nearest tick, because timers fire a little late, or early.
const tick = new Date(Math.round(Date.now() / interval) * interval).toISOString();

try {
  // Named by its tick and kept, never released: whoever comes later finds it taken, and the next tick is free even
  // if a clock is slow. With a wait, because replicas that start at the same instant may get a part of the
  // endpoints each, and with tryAcquire nobody would run it.
  await redlock.acquire(`report:${tick}`, { ttl: 2 * interval, wait: 5_000 });
  console.log(`replica ${process.pid} runs the job of ${tick}`);
} catch (error) {
  // An outage is a QuorumError, not this: a cron job had better be tried again than be skipped.
  if (!(error instanceof LockHeldError)) throw error;
  console.log(`replica ${process.pid} leaves the job of ${tick} to another`);
}
