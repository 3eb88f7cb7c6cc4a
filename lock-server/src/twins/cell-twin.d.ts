import { type Twin } from "./twin.ts";
/** The twin of `cellScript`, which says what it does. */
export declare const cellTwin: Twin;
