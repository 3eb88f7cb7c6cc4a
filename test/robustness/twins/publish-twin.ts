import type { ByteReply } from "../../../local/src/engine/commands/reply.ts";
import { cellTwin } from "./cell-twin.ts";
import type { Twin, TwinCall } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "4fc793b6a4042951a24fcd2eabc623b2ec93d0a6",
    upstash: "19b0921d59be282dab27c15fb3311ba105efe92b",
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
