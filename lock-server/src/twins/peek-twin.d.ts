import type { Twin } from "./twin.ts";
/** The twin of `peekScript`, which says what it does. */
export declare const peekTwin: Twin;
