/**
 * See who holds a lock, and free it.
 *
 * @module redlock-edge/inspect
 */
export { forceRelease, type Inspection, type InspectionVote, inspect } from "./inspect.ts";
