import type { WakeUp } from "../lock/wake-up.ts";
import { channelOf } from "./channel.ts";
import { free } from "./events.ts";
import { ChannelListener } from "./listener.ts";

/**
 * Wakes up waiters by Redis's pub/sub: a waiter reads a stream of server-sent events (Upstash's `/subscribe`), and a
 * release publishes on every endpoint. Set it as `wakeUp` for holders and for waiters. Commands: one more for a release
 * of each resource, 2 for a wait, and one for each question of a waiter.
 *
 * @example
 * const redlock = new Redlock({ endpoints, wakeUp: pubSub });
 * await using lock = await redlock.acquire("invoice:42", { wait: 30_000 });
 */
export const pubSub: WakeUp = {
  announce: (prefix, kind, resources) =>
    resources.map((resource) => ["PUBLISH", channelOf(prefix, kind, resource), free]),
  listen: (settings, waiter, resources) => new ChannelListener(settings, waiter, resources),
};
