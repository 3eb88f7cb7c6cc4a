import { systemRuntime } from "../../src/index.ts";
import { type SteppingRuntime, steppingRuntime } from "./stepping-runtime.ts";

/**
 * The time of one client in front of servers in real time: it stands still until the test advances it. So a client waits for
 * an answer for as long as a busy machine takes, and is past a timeout or half of a ttl as soon as the test wants it.
 *
 * @example
 * const time = ownTime();
 * const lock = await local.redlock({ runtime: time, ttl: 20_000 }).acquire("a");
 * await time.advance(20_000); // lost, though its keys stand
 */
export function ownTime(): SteppingRuntime {
  const time = steppingRuntime();
  time.wallOffset = Date.now() - time.now();
  // Tokens of two clients must differ.
  time.randomBytes = systemRuntime.randomBytes;
  return time;
}
