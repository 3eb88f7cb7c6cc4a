import type { Twin } from "./twin.ts";
/** The twins of all scripts, by the SHA-1 of the script that each replaces. */
export declare const twins: ReadonlyMap<string, Twin>;
