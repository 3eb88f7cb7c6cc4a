import { cellTwin } from "./cell-twin.ts";
import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "8e29eb19664fd437193594cf931a8a655a01140d",
    upstash: "7930b15f97c25a765253a6be535b8a36e957b330",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, args } = twin;
  const reply = cellTwin.run(twin);
  for (const channel of args.slice(7 + 2 * whole(args[2]!))) {
    const [, subscribers] = call("PUBSUB", "NUMSUB", channel) as [string, number];
    if (subscribers > 0) call("PUBLISH", channel, subscribers);
  }
  return reply;
}
