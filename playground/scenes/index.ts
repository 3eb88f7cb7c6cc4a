import { evenSplit } from "./even-split.ts";
import { expiredOnArrival } from "./expired-on-arrival.ts";
import { lateWriter } from "./late-writer.ts";
import { mailbox } from "./mailbox.ts";
import type { Scene } from "./scene.ts";
import { twice } from "./twice.ts";

export { type Act, type Scene, type Stage, stageOf } from "./scene.ts";

/** The scenes, in the order in which they are offered. */
export const scenes: readonly Scene[] = [twice, lateWriter, mailbox, evenSplit, expiredOnArrival];
