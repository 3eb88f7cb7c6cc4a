import { cellTwin } from "./cell-twin.ts";
import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "c1ac7a1a056967cd8600ff236280135da50d35a1",
    upstash: "793d06cdd9024271589dfdd11521217f1901a9a3",
  },
  run,
};

function run(twin: TwinCall): Reply {
  const { call, args } = twin;
  const reply = cellTwin.run(twin);
  let spent = 0;
  for (const channel of args.slice(7 + 2 * whole(args[2]!))) {
    const [, subscribers] = call("PUBSUB", "NUMSUB", channel) as [string, number];
    spent += 1;
    if (subscribers === 0) continue;
    call("PUBLISH", channel, subscribers);
    spent += 1;
  }
  return [reply, spent];
}
