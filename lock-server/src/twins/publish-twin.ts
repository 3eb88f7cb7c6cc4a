import { cellTwin } from "./cell-twin.ts";
import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "643a857066b7f91dc0612ea66162885daf3cf14c",
    upstash: "65f1aec0232f0ee0156a99bd83e118f70b6f0565",
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
