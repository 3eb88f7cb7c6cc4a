import { type Twin } from "./twin.ts";
/** The twin of `intervalScript`, which says what it does. */
export declare const intervalTwin: Twin;
