import { cellTwin } from "./cell-twin.ts";
import type { Reply, Twin, TwinCall } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "0540837d42043b4441332788f3ac8bf828e1e597",
    upstash: "acd261b229ab60a07169591d1970c41fdaf474cc",
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
