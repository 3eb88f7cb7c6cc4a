import { endThrough } from "../../redis/cell.ts";
import { runScript } from "../../redis/script.ts";
import { channelOf } from "./channel.ts";
import { ChannelListener } from "./channel-listener.ts";
import { publishScript } from "./publish.lua.ts";
import type { WakeUp } from "./wake-up.ts";

/**
 * Wakes up waiters by Redis's pub/sub instead of letting them poll: a waiter reads one stream of server-sent events
 * (Upstash's `/subscribe`), and a release publishes on every endpoint. For the option `wakeUp` of locks and
 * synchronizers, to be set for those that hold and those that wait.
 *
 * A release costs up to 3 commands more, a wait 2. A message is a hint: each acquire is decided by its rounds as before,
 * and a waiter that gets no message asks after 1 to 4 seconds.
 *
 * @example
 * const redlock = new Redlock({ endpoints, wakeUp: pubSub });
 * await using lock = await redlock.acquire("invoice:42", { wait: 30_000 });
 */
export const pubSub: WakeUp = {
  publishingRelease(prefix, kind, resources) {
    const channels = channelsOf(prefix, kind, resources);
    return (call, cell) =>
      endThrough(call, cell, (keys, args) =>
        // It publishes even if it does not find its value: a holder has a quorum, and perhaps not the endpoint at which
        // all listen.
        runScript(call, publishScript, keys, [...args, ...channels]),
      );
  },
  listen: (settings, waiter, resources) =>
    new ChannelListener(settings, waiter, channelsOf(settings.prefix, waiter.kind, resources)),
};

function channelsOf(prefix: string, kind: string, resources: readonly string[]): string[] {
  return resources.map((resource) => channelOf(prefix, kind, resource));
}
