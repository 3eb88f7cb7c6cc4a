import { type Twin } from "./twin.ts";
/** The twin of `slotScript`, which says what it does. */
export declare const slotTwin: Twin;
