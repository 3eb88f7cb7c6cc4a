// The job of interval.mjs on a Redis of your own, by ioredis. A connected client keeps its process alive, so this program
// disconnects it, even if the job fails.

import { Redis } from "ioredis";
import { Redlock } from "redlock-edge";
import { ioredisEndpoint } from "redlock-edge/sockets";
import { once } from "redlock-edge/sync";

// Without retries of its own: a command that was sent again may be executed twice, so it would need a script.
const redis = new Redis(process.env.REDIS_URL ?? "redis://localhost", { maxRetriesPerRequest: 0 });
const redlock = new Redlock({ endpoints: [ioredisEndpoint(redis)] });

try {
  const outcome = await once(redlock, "report", { every: 50_000, ttl: 3_000 }, async ({ fence, signal }) => {
    const reports = process.env.REPORTS_URL ?? "https://reports.example";
    const stored = await fetch(`${reports}/daily?fence=${fence}`, { method: "PUT", signal });
    if (!stored.ok) throw new Error(`the reports answered ${stored.status}`);
  });
  console.log(outcome.ran ? "the job ran here" : "this interval's run has begun already");
} finally {
  redis.disconnect();
}
