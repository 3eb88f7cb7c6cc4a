import type { Twin } from "./twin.ts";
/** The twin of `freeSynchronizerScript`, which says what it does. */
export declare const freeSynchronizerTwin: Twin;
