/**
 * Wake up waiters by a message when a lock is released, so they poll less.
 *
 * @module redlock-edge/wake-up
 */
export { pubSub } from "./pub-sub.ts";
