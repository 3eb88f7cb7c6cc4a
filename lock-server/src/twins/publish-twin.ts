import { cellTwin } from "./cell-twin.ts";
import { type Reply, type Twin, type TwinCall, whole } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "81a3d26f58d76007d6fe47e4b370f0a30b16c670",
    upstash: "f5a074831b4a367ea31277a7c14d88f1b930992b",
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
