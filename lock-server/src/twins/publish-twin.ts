import { cellTwin } from "./cell-twin.ts";
import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "03653690e29a245e2e73ed53e46464f640ec5c60",
    upstash: "3ea489598b31d40845b0faa90eac2c53eb658f35",
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
