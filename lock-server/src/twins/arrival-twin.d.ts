import { type Twin } from "./twin.ts";
/** The twin of `arrivalScript`, which says what it does. */
export declare const arrivalTwin: Twin;
