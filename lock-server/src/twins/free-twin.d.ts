import type { Twin } from "./twin.ts";
/** The twin of `freeScript`, which says what it does. */
export declare const freeTwin: Twin;
