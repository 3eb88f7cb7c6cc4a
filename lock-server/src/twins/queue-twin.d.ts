import { type Twin } from "./twin.ts";
/** The twin of `queueScript`, which says what it does. */
export declare const queueTwin: Twin;
