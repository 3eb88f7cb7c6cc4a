import { type Twin } from "./twin.ts";
/** The twin of `debounceScript`, which says what it does. */
export declare const debounceTwin: Twin;
