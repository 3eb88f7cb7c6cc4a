/**
 * Pass a held lock to another process, for example in a queue's message.
 *
 * @module redlock-edge/handoff
 */
export { handoff, type LockJSON, type ResumeOptions, resume } from "./handoff.ts";
