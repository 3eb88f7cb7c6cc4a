// A nightly job on many replicas: every replica starts it, one runs it.
//
//   npx redlock-edge dev            # in another terminal; paste its export lines here
//   node examples/cron.mjs & node examples/cron.mjs & node examples/cron.mjs & wait

import { LockHeldError, Redlock } from "redlock-edge";

const redlock = Redlock.fromEnv(process.env);
const minute = new Date().toISOString().slice(0, 16);

try {
  // Named by the minute, and never released: whoever comes later in the same minute finds it taken. A short
  // wait, because replicas that start at the same instant may at first get a part of the endpoints each.
  await redlock.acquire(`nightly:${minute}`, { ttl: 120_000, wait: 1_000 });
  console.log(`replica ${process.pid} runs the job`);
} catch (error) {
  // An outage is a QuorumError, not this: a cron job had better be tried again than be skipped.
  if (!(error instanceof LockHeldError)) throw error;
  console.log(`replica ${process.pid} leaves it to another`);
}
