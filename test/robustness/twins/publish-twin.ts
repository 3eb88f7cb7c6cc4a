import type { ByteReply } from "../../../src/testing/commands/reply.ts";
import { registerTwin } from "./register-twin.ts";
import type { Twin, TwinCall } from "./twin.ts";

/** The twin of `publishScript`, which says what it does. */
export const publishTwin: Twin = {
  sha: {
    redis: "13f060608477e5a2d1f1e29e4b51cdbf1ce28e79",
    upstash: "b452b32241867f7eda96cb66579d4ba1fd932eff",
  },
  run,
};

function run(twin: TwinCall): ByteReply {
  const { call, args } = twin;
  const reply = registerTwin.run(twin) as readonly ByteReply[];
  let spent = 0;
  for (const channel of reply[0] === args[1] ? args.slice(8) : []) {
    const [, subscribers] = call("PUBSUB", "NUMSUB", channel) as [string, number];
    spent += 1;
    if (subscribers === 0) continue;
    call("PUBLISH", channel, subscribers);
    spent += 1;
  }
  return [reply, spent];
}
