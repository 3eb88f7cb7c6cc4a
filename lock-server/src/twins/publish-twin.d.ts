import type { Twin } from "./twin.ts";
/** The twin of `publishScript`, which says what it does. */
export declare const publishTwin: Twin;
