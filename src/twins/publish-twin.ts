import { cellTwin } from "./cell-twin.ts";
import type { Reply, Twin, TwinCall } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "8d7e41fb499b0025b08e5f07edf44804d06e90dc",
    upstash: "7d010d784e1a6b2f3182ee6546be107fda51bf5d",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, args } = twin;
  const reply = cellTwin.run(twin);
  let spent = 0;
  for (const channel of args.slice(8)) {
    const [, subscribers] = call("PUBSUB", "NUMSUB", channel) as [string, number];
    spent += 1;
    if (subscribers === 0) continue;
    call("PUBLISH", channel, subscribers);
    spent += 1;
  }
  return [reply, spent];
}
