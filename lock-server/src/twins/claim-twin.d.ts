import { type Twin } from "./twin.ts";
/** The twin of `claimScript`, which says what it does. */
export declare const claimTwin: Twin;
