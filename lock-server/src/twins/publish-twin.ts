import { cellTwin } from "./cell-twin.ts";
import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "d90e0ff92bb7ccc98ded02d97bea2b75eaaebc1e",
    upstash: "38ca1c31455808dcc32aa4b568223b003d1cd4fd",
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
