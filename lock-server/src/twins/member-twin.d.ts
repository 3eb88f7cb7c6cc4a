import { type Twin } from "./twin.ts";
/** The twin of `memberScript`, which says what it does. */
export declare const memberTwin: Twin;
