// A middleware of middy 6: the handler runs under a lock, which is `context.lock`. Unlike `using` it does not throw when the
// lock was lost meanwhile: pass `context.lock.signal` on, and write with the fence.

import type { MiddlewareObj } from "@middy/core";
import type { Context } from "aws-lambda";
import type { FencedLock, Redlock } from "redlock-edge";

type Locked = Context & { lock?: FencedLock };

export function withLock<Event>(redlock: Redlock, nameOf: (event: Event) => string) {
  const release = async ({ context }: { context: Locked }) => {
    await context.lock?.release();
  };
  return {
    async before({ event, context }) {
      const deadline = Date.now() + context.getRemainingTimeInMillis() - 1_500;
      context.lock = await redlock.acquire(nameOf(event), { deadline, fencing: true, autoExtend: true });
    },
    after: release,
    onError: release,
  } satisfies MiddlewareObj<Event, unknown, Error, Locked>;
}
