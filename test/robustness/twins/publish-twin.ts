import type { ByteReply } from "../../../local/src/engine/commands/reply.ts";
import { cellTwin } from "./cell-twin.ts";
import type { Twin, TwinCall } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "4f0e3b5e7cd3cb9d664c524ea801b8a2cdc25bfc",
    upstash: "e56ad585ada2e0e50e14b7f39973c61044aed1ef",
  },
  run,
};

function run(twin: TwinCall): ByteReply {
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
