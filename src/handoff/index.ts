/** @module redlock-edge/handoff */
export { handoff, type LockJSON, type ResumeOptions, resume } from "./handoff.ts";
